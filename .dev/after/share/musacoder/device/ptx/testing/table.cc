// SPDX-License-Identifier: Apache-2.0
//
// The table of instructions: a kernel for each form, each thread of which computes one record.
#include <algorithm>
#include <cstring>
#include <string>

#include "ptx/testing/case.h"
#include "ptx/testing/forms.h"
#include "ptx/testing/specials.h"

namespace mc::ptx {
namespace {

constexpr char kHead[] = ".version 8.7\n.target sm_90\n.address_size 64\n\n";
constexpr int64_t kThreads = 128;
constexpr size_t kFormsOfModule = 150;

std::string identifier(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

// The text of a form with its operands' names: $0 is %d, $1 is %s1.
std::string fill_in(const std::string& text) {
  std::string filled;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '$') {
      filled += text[k];
    } else {
      ++k;
      filled += text[k] == '0' ? "%d" : std::string("%s") + text[k];
    }
  }
  return filled;
}

std::string declare(const std::string& name, char kind) {
  return ".reg " + std::string(traits_of(kind).declared) + " " + name + ";\n";
}

std::string load(const std::string& name, char kind, int64_t offset) {
  const std::string type(traits_of(kind).loaded), at = "[%in+" + std::to_string(offset) + "];\n";
  if (kind != 'p') return "ld.global" + type + " " + name + ", " + at;
  return "ld.global.u32 %t, " + at + "setp.ne.u32 " + name + ", %t, 0;\n";
}

std::string text_of(const Case& one, const Form& form) {
  std::string text = ".visible .entry " + one.name + "(.param .u64 in, .param .u64 out)\n{\n";
  text += ".reg .b64 %in, %out;\n.reg .b32 %t, %u;\n" + declare("%d", form.kinds[0]);
  for (size_t k = 1; k < form.kinds.size(); ++k) {
    text += declare("%s" + std::to_string(k), form.kinds[k]);
  }
  text +=
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
      "mov.u32 %t, %ctaid.x;\nmov.u32 %u, %tid.x;\nmad.lo.u32 %t, %t, 128, %u;\n";
  const int64_t in_stride = one.operands[0].stride, out_stride = one.results[0].stride;
  text += "mad.wide.u32 %in, %t, " + std::to_string(in_stride) + ", %in;\n";
  text += "mad.wide.u32 %out, %t, " + std::to_string(out_stride) + ", %out;\n";
  for (size_t k = 1; k < form.kinds.size(); ++k) {
    text += load("%s" + std::to_string(k), form.kinds[k], one.operands[k - 1].offset);
  }
  text += fill_in(form.text) + "\n";
  if (form.kinds[0] == 'p') {
    text += "selp.u32 %t, 1, 0, %d;\nst.global.u32 [%out], %t;\n";
  } else {
    text += "st.global" + std::string(traits_of(form.kinds[0]).loaded) + " [%out], %d;\n";
  }
  return text + "ret;\n}\n\n";
}

bool is_legal_divisor(uint64_t value, const Form& form, size_t operand) {
  return !form.has_divisor || operand != 2 || value != 0;
}

void put(std::vector<uint8_t>& bytes, int64_t at, uint64_t value, Type type) {
  std::memcpy(bytes.data() + at, &value, static_cast<size_t>(bytes_of(type)));
}

// One source: all edges and random values. Several: random ones, of which many are edges.
void fill_input(Case& one, const Form& form, Random& random) {
  for (int64_t record = 0; record < one.num_records; ++record) {
    for (size_t k = 1; k < form.kinds.size(); ++k) {
      const Column& column = one.operands[k - 1];
      const std::vector<uint64_t>& edges = edges_of(form.kinds[k]);
      const auto index = static_cast<size_t>(record);
      uint64_t value = 0;
      do {
        const bool takes_edge = k == 1 && index < edges.size();
        value = takes_edge ? edges[index] : random_value(form.kinds[k], random);
        value &= ~0ULL >> (64 - 8 * bytes_of(column.type));
      } while (!is_legal_divisor(value, form, k));
      put(one.input, column.offset + record * column.stride, value, column.type);
    }
  }
}

Case case_of(const Form& form, size_t number) {
  Case one;
  one.name = "k" + std::to_string(number) + "_" + identifier(form.name());
  one.num_records = form.is_approximate ? 1024 : form.kinds.size() == 2 ? 256 : 384;
  const auto num_edges = std::ssize(edges_of(form.kinds[1]));
  one.num_records = std::max(one.num_records, (num_edges + kThreads - 1) / kThreads * kThreads);
  one.block[0] = kThreads;
  one.grid[0] = static_cast<uint32_t>(one.num_records / kThreads);
  int64_t stride = 0;
  for (size_t k = 1; k < form.kinds.size(); ++k) {
    const Type type = traits_of(form.kinds[k]).type;
    const int64_t width = bytes_of(type);
    stride = (stride + width - 1) / width * width;
    one.operands.push_back({"operand " + std::to_string(k), type, stride, 0, {}});
    stride += width;
  }
  stride = (stride + 7) / 8 * 8;
  for (Column& operand : one.operands) operand.stride = stride;
  const Type type = traits_of(form.kinds[0]).type;
  one.results.push_back({form.text, type, 0, bytes_of(type), form.tolerance});
  one.output_bytes = one.num_records * bytes_of(type);
  one.input.resize(static_cast<size_t>(one.num_records * stride));
  Random random(number + 1);
  fill_input(one, form, random);
  one.text = text_of(one, form);
  return one;
}

}  // namespace

std::vector<CaseModule> table_cases() {
  const std::vector<Form> forms = instruction_forms();
  std::vector<CaseModule> modules;
  for (size_t begin = 0; begin < forms.size(); begin += kFormsOfModule) {
    CaseModule module;
    module.name = "forms_" + std::to_string(modules.size());
    module.head = kHead;
    const size_t end = std::min(forms.size(), begin + kFormsOfModule);
    for (size_t k = begin; k < end; ++k) module.cases.push_back(case_of(forms[k], k));
    modules.push_back(std::move(module));
  }
  modules.push_back(special_cases(kHead));
  return modules;
}

}  // namespace mc::ptx
