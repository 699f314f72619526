// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dead_python.h"

#include <gtest/gtest.h>

namespace mc::eval {
namespace {

struct Case {
  const char* module;
  const char* live;
};

class DeadPython : public testing::TestWithParam<Case> {};

TEST_P(DeadPython, IsReplacedLineByLine) {
  EXPECT_EQ(live_python(GetParam().module), GetParam().live);
}

INSTANTIATE_TEST_SUITE_P(
    Handlers, DeadPython,
    testing::Values(
        Case{"try:\n  torch.musa.synchronize()\nexcept AttributeError:\n  "
             "torch.cuda.synchronize()\n",
             "try:\n  torch.musa.synchronize()\nexcept AttributeError:\n  raise NameError\n"},
        Case{"try: import torch_musa\nexcept ImportError as e: a = 1; b = 2\nx = 1\n",
             "try: import torch_musa\nexcept ImportError as e: raise NameError\nx = 1\n"},
        Case{"try:\n  import torch_musa\nexcept (ImportError, OSError):\n  x = 1\n\n  y = 2\n"
             "except Exception:\n  pass\nfinally:\n  z = 1\n",
             "try:\n  import torch_musa\nexcept (ImportError, OSError):\n  raise NameError\n\n\n"
             "except Exception:\n  raise NameError\nfinally:\n  z = 1\n"},
        Case{"try:\n  import triton\nexcept ImportError:\n  x = 1\n",
             "try:\n  import triton\nexcept ImportError:\n  x = 1\n"}));

INSTANTIATE_TEST_SUITE_P(
    Branches, DeadPython,
    testing::Values(
        Case{"if hasattr(torch, 'musa'):\n  x = 1\nelif a:\n  x = 2\nelse:\n  x = 3\n",
             "if hasattr(torch, 'musa'):\n  x = 1\nelif a:\n  raise NameError\nelse:\n"
             "  raise NameError\n"},
        Case{"if not (hasattr(torch, \"musa\") and torch.musa.is_available()):\n  x = 1\n",
             "if not (hasattr(torch, \"musa\") and torch.musa.is_available()):\n  raise "
             "NameError\n"},
        Case{"if torch.cuda.is_available():\n  x = 1\nelse:\n  x = 2\n",
             "if torch.cuda.is_available():\n  raise NameError\nelse:\n  x = 2\n"},
        Case{"if a or torch.musa.is_available():\n  x = 1\nelse: x = 2\n",
             "if a or torch.musa.is_available():\n  x = 1\nelse: raise NameError\n"},
        Case{"if a and torch.musa.is_available():\n  x = 1\nelse: x = 2\n",
             "if a and torch.musa.is_available():\n  x = 1\nelse: x = 2\n"},
        Case{"if hasattr(x, 'musa'):\n  x = 1\nelse: x = 2\n",
             "if hasattr(x, 'musa'):\n  x = 1\nelse: x = 2\n"}));

INSTANTIATE_TEST_SUITE_P(
    Names, DeadPython,
    testing::Values(
        Case{"try:\n  import torch_musa\n  M = True\nexcept ImportError:\n  M = False\n"
             "if M:\n  x = 1\nelse:\n  x = 2\n",
             "try:\n  import torch_musa\n  M = True\nexcept ImportError:\n  raise NameError\n"
             "if M:\n  x = 1\nelse:\n  raise NameError\n"},
        Case{"M = hasattr(torch, 'musa')\nM = f()\nif M: x = 1\nelse: x = 2\n",
             "M = hasattr(torch, 'musa')\nM = f()\nif M: x = 1\nelse: x = 2\n"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, DeadPython,
    testing::Values(Case{"f(a, torch.musa if hasattr(torch, 'musa') else torch.cuda, b)\n",
                         "f(a, torch.musa if hasattr(torch, 'musa') else None, b)\n"},
                    Case{"d = x.cuda() if torch.cuda.is_available() else x.musa()\n",
                         "d = None if torch.cuda.is_available() else x.musa()\n"},
                    Case{"y = [a if b else c for c in d]\n", "y = [a if b else c for c in d]\n"}));

// Any text terminates, Python or not.
INSTANTIATE_TEST_SUITE_P(NoPython, DeadPython,
                         testing::Values(Case{"if True:", "if True:"}, Case{"try:\n", "try:\n"},
                                         Case{"if :\nelse:\nexcept:", "if :\nelse:\nexcept:"},
                                         Case{"if (((not", "if (((not"}, Case{"", ""}));

}  // namespace
}  // namespace mc::eval
