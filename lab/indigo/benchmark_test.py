# SPDX-License-Identifier: Apache-2.0
"""The benchmark's oracle, its tasks and its counts, with a kernel of our own.

usage: python3 -m unittest discover -s lab/indigo -p '*_test.py'
"""

from __future__ import annotations

import random
import tempfile
import unittest
from pathlib import Path
from typing import Any

import benchmark
import suite3
from cases import GRAPHS, Verdict, spread
from suite import Oracle, Variant

Json = dict[str, Any]

KERNEL = """/* A comment. */
typedef int data_t;
#include "indigo_cuda.h"
__global__ void test_kernel(int* nindex, int* nlist, data_t* data1, data_t* data2, int numv)
{
  __shared__ data_t sums[64];
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  BODY
}

void serial_code(int* nindex) {}
"""


def verdict(body: str, name: str = "pull_node_neighbor") -> Verdict:
    variant = Variant(name, KERNEL.replace("BODY", body))
    with tempfile.TemporaryDirectory() as folder:
        return Oracle(variant, Path(folder)).verdict(GRAPHS["path"])


class TheOracle(unittest.TestCase):
    def test_shows_what_unordered_plain_writes_change(self) -> None:
        self.assertEqual(verdict("data1[0] = i;").shows, ("global_race",))
        self.assertEqual(verdict("atomicAdd(data1, 1);"), Verdict())
        looks = verdict("if (data1[0] < i) atomicMax(data1, i);")
        self.assertEqual(looks, Verdict(shows=(), weak=("global_race",)))

    def test_orders_threads_of_a_block_by_barriers_and_of_a_warp_by_its_operations(self) -> None:
        own, other = "sums[threadIdx.x] = i + 1;", "int s = sums[63 - threadIdx.x];"
        near = "int s = sums[threadIdx.x ^ 1];"
        self.assertEqual(verdict(own + "__syncthreads();" + other), Verdict())
        self.assertIn("shared_race", verdict(own + other).shows)
        self.assertEqual(verdict(own + "__shfl_xor_sync(~0, 1, 1);" + near), Verdict())
        self.assertIn("shared_race", verdict(own + "__shfl_xor_sync(~0, 1, 1);" + other).shows)

    def test_shows_accesses_out_of_bounds_and_reads_of_unwritten_words(self) -> None:
        self.assertEqual(verdict("int end = nindex[i + 1];").shows, ("out_of_bounds",))
        self.assertEqual(verdict("int s = sums[0];").shows, ("uninitialised_shared",))

    def test_computes_warps_and_barriers_with_a_value_as_cuda_does(self) -> None:
        body = """
        int lane = threadIdx.x % 32, bad = 0;
        bad += __shfl_xor_sync(~0, lane, 4) != (lane ^ 4);
        bad += __shfl_up_sync(~0, lane, 2) != (lane < 2 ? lane : lane - 2);
        bad += __popc(__ballot_sync(~0, lane < 5)) != 5;
        bad += __syncthreads_count(threadIdx.x < 40) != 40;
        bad += !__any_sync(~0, lane == 7) || __syncthreads_or(threadIdx.x == 64);
        if (bad) data1[-1] = 0;"""
        self.assertEqual(verdict(body), Verdict())


class Variants(unittest.TestCase):
    def test_have_a_reference_that_does_what_their_names_say(self) -> None:
        def result(name: str) -> list[list[int]]:
            import torch

            scope: dict[str, Any] = {}
            exec(Variant(name, "").task(GRAPHS["path"]), scope)
            index, neighbors, _, _ = scope["get_inputs"]()
            data = [torch.tensor([0, 1, 2, 3, 4, 5], dtype=torch.int32) for _ in range(2)]
            return [one.tolist() for one in scope["Model"]()(index, neighbors, *data)]

        # Edges: 1-2, 2-3, 3-4.
        self.assertEqual(result("pull_node_neighbors")[0], [0, 3, 6, 9, 7, 5])
        self.assertEqual(result("pull_node_neighbor_last")[0], [0, 3, 5, 7, 7, 5])
        self.assertEqual(result("conditional_vertex_neighbors_break")[0], [3, 1, 2, 3, 4, 5])
        self.assertEqual(result("conditional_edge_neighbors_cond")[0], [4, 1, 2, 3, 4, 5])
        self.assertEqual(result("push_node_neighbors_block")[0], [0, 1, 1, 2, 3, 5])
        self.assertEqual(result("populate_worklist_neighbors")[1], [3, 1, 2, 3, 4, 5])

    def test_have_bugs_workers_and_more_threads_than_vertices(self) -> None:
        one = Variant("push_node_neighbors_warp_persistent_boundsBug_atomicBug", "")
        self.assertEqual((one.pattern, one.worker), ("push_node", "warp"))
        self.assertEqual(one.bugs, "boundsBug+atomicBug")
        self.assertEqual(Variant("path_compression", "").num_blocks(GRAPHS["hub"]), 3)

    def test_are_drawn_from_all_groups(self) -> None:
        groups = {"a": [1, 2, 3], "b": [4], "c": [5, 6]}
        self.assertEqual(len({1, 2, 3} & set(spread(groups, 3, random.Random(1)))), 1)
        self.assertEqual(sorted(spread(groups, 9, random.Random(1))), [1, 2, 3, 4, 5, 6])


class Programs(unittest.TestCase):
    def test_have_labels_that_a_reading_corrected(self) -> None:
        def truth(name: str) -> Verdict:
            return suite3.truth_of(suite3.Program(Path(name + ".cu")))

        self.assertEqual(truth("CC_CUDA_V_Topo_Pull_Warp_NoBoundsBug"), Verdict())
        self.assertEqual(truth("CC_CUDA_V_Topo_Pull_Warp_BoundsBug").shows, ("out_of_bounds",))
        self.assertEqual(truth("TC_CUDA_V_Warp_Reduction").weak, ("uninitialised_shared",))
        self.assertEqual(truth("PR_CUDA_Pull_Warp_NonDeterm_GlobalAdd").weak, ("global_race",))

    def test_hide_bugs_that_their_graph_cannot_show(self) -> None:
        def is_hidden(name: str) -> bool:
            return suite3.is_hidden(suite3.Program(Path(name + ".cu")))

        self.assertTrue(is_hidden("MIS_CUDA_V_Topo_Push_NonPersist_Warp_ExcessThreadsBug"))
        self.assertFalse(is_hidden("MIS_CUDA_V_Topo_Push_NonPersist_Thread_ExcessThreadsBug"))
        self.assertTrue(is_hidden("BFS_CUDA_V_Topo_Pull_NonPersist_Block_FieldBug"))
        self.assertFalse(is_hidden("BFS_CUDA_V_Topo_Pull_Persist_Block_FieldBug"))
        self.assertTrue(is_hidden("PR_CUDA_Push_SyncBug_NonPersist_Thread_Reduction"))
        self.assertFalse(is_hidden("PR_CUDA_Push_SyncBug_NonPersist_Thread_BlockAdd"))

    def test_are_one_text_without_what_the_host_does_otherwise(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder)
            path = library / "TC_CUDA_V_Thread.cu"
            path.write_text(
                "/* A comment. */\nstatic const int ThreadsPerBlock = 512;\n"
                '#include "a.h"\nint last;\n'
            )
            header = (
                "/* Another. */\nint first;\nstatic int GPUinfo(const int d)\n{\n  exit(d);\n}\n"
            )
            main = '#include "csort.h"\nint main()\n{\n  first = 1;\n}\n'
            (library / "a.h").write_text(header + main)
            text = suite3.Program(path).text(library)
        self.assertIn("ThreadsPerBlock = 64;\nstatic int GPUinfo(int, bool = true)", text)
        self.assertEqual(text.count("GPUinfo"), 1)
        self.assertIn("int first;", text)
        self.assertIn("int last;", text)
        self.assertFalse({"main", "include", "comment"} & set(text.replace("(", " ").split()))


def outcome(kind: str, *findings: str) -> Json:
    return {"kind": kind, "trials": [{"findings": [{"kind": one} for one in findings]}]}


class Scores(unittest.TestCase):
    def score(self, shows: str, weak: str, result: Json) -> str:
        return benchmark.score({"shows": shows.split(), "weak": weak.split()}, result)

    def test_need_a_finding_of_the_kind_that_shows(self) -> None:
        bounds = outcome("wrong", "out_of_bounds_read")
        self.assertEqual(self.score("out_of_bounds", "", bounds), "found")
        self.assertEqual(self.score("global_race", "", outcome("wrong")), "missed")
        self.assertEqual(self.score("global_race", "", outcome("unsupported")), "refused")

    def test_count_what_neither_shows_nor_is_weak_as_an_alarm(self) -> None:
        race = outcome("wrong", "global_race")
        self.assertEqual(self.score("", "", race), "alarms")
        self.assertEqual(self.score("shared_race", "", race), "alarms")
        self.assertEqual(self.score("", "global_race", race), "found")
        self.assertEqual(self.score("", "global_race", outcome("pass")), "silent")

    def test_expect_anything_behind_an_access_out_of_bounds(self) -> None:
        both = outcome("wrong", "out_of_bounds_read", "global_race")
        self.assertEqual(self.score("out_of_bounds", "", both), "found")


if __name__ == "__main__":
    unittest.main()
