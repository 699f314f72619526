// SPDX-License-Identifier: Apache-2.0
#include "forge/templates.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;

const std::string kManifest =
    R"({"walk": "rows", "feature": "f", "plan": "p", "cost": {"busy": "n"}, "faults": {},
  "variants": {"8": {"T": "8"}}})";
const std::string kKernel = "// Licence\nvoid k() { {{value}} }\n// Launch.\nk();\n";

// The library of a folder with one template.
Result<TemplateLibrary> load(const std::string& manifest, const std::string& kernel) {
  const auto folder = TemporaryDirectory::create("templates").value();
  fs::create_directories(folder.path() / "one");
  EXPECT_TRUE(write_file_atomically(folder.path() / "faults.json",
                                    R"({"of_formulas": [], "of_templates": {}})"));
  EXPECT_TRUE(write_file_atomically(folder.path() / "one/manifest.json", manifest));
  EXPECT_TRUE(write_file_atomically(folder.path() / "one/kernel.cu", kernel));
  return load_templates(folder.path());
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Templates, AreReadWithOneForEachVariant) {
  const TemplateLibrary library =
      load(with(kManifest, R"("8": {"T": "8"})", R"("8": {"T": "8"}, "x": {"T": "", "U": "x"})"),
           with(kKernel, "{{value}}", "[[guard|{{T}}]] {{T-1}} {{U}}"))
          .value();
  ASSERT_EQ(library.templates.size(), 2u);
  EXPECT_EQ(library.templates[0].full_name(), "one_8");
  EXPECT_EQ(library.templates[0].device,
            "void k() { \x01guard\x02"
            "8\x03 7 {{U}} }\n");
  EXPECT_EQ(library.templates[1].device, "void k() { \x01guard\x02\x03 {{T-1}} x }\n");
  EXPECT_EQ(library.templates[0].host, "k();\n");
}

TEST(Templates, ThatAreInvalidAreNamedWithTheirError) {
  const struct {
    std::string manifest;
    std::string kernel;
    const char* message;  // The end of the message.
  } kTable[] = {
      {with(kManifest, "rows", "columns"), kKernel,
       "\"walk\" is elements, rows, tiles or scans, not columns"},
      {with(kManifest, R"("faults": {})", R"("faults": {"guard": {}})"), kKernel,
       "a fault's name is its site and kind, not guard"},
      {kManifest, "// Licence\nvoid k();\n", "kernel.cu has no line \"// Launch.\""},
      {kManifest, with(kKernel, "{{value}}", "[[guard]]"),
       "kernel.cu: a \"[[\" has no name and \"|\""},
      {kManifest, with(kKernel, "{{value}}", "[[guard|x"), "kernel.cu: a \"[[\" has no \"]]\""},
      {kManifest, with(kKernel, "{{value}}", "[[a|x [[b|y]]"), "kernel.cu: a \"[[\" has no \"]]\""},
      {kManifest, with(kKernel, "{{value}}", "{{value"), "kernel.cu: a \"{{\" has no \"}}\""},
      {kManifest, with(kKernel, "{{value}}", "{{#passes}}x"),
       "kernel.cu: a section has no {{/passes}}"},
      {kManifest, with(kKernel, "k();\n", "[[guard|k();\n"), "kernel.cu: a \"[[\" has no \"]]\""},
  };
  for (const auto& row : kTable) {
    const auto library = load(row.manifest, row.kernel);
    ASSERT_FALSE(library) << row.message;
    EXPECT_EQ(library.error().code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(library.error().message.ends_with(row.message)) << library.error().message;
    EXPECT_NE(library.error().message.find("/one"), std::string::npos) << library.error().message;
  }
}

TEST(Templates, ThatLackAMemberAreNamed) {
  for (const char* member : {"walk", "feature", "plan", "cost", "faults", "variants"}) {
    const auto library =
        load(with(kManifest, "\"" + std::string(member) + "\"", "\"other\""), kKernel);
    ASSERT_FALSE(library) << member;
    EXPECT_NE(library.error().message.find("'" + std::string(member) + "'"), std::string::npos)
        << library.error().message;
  }
}

// The holes are a, b and e: e is empty, b has two lines; the section s is repeated three times.
std::string filled_with_values(const std::string& text) {
  return filled(text, {.hole = [](const std::string& name, size_t repetition) -> std::string {
                         if (name == "e") return "";
                         if (name == "b") return "b1\nb2\n";
                         return name + std::to_string(repetition);
                       },
                       .repeat = [](const std::string& name) -> size_t {
                         return name == "s" ? 3 : name == "one" ? 1 : 0;
                       }});
}

TEST(Filled, FillsHolesAndRepeatsSections) {
  const struct {
    const char* text;
    const char* filled;
  } kTable[] = {
      {"", ""},
      {"no hole\n", "no hole\n"},
      {"x = {{a}};\n", "x = a0;\n"},
      {"{{a}}{{a}}", "a0a0"},
      // The hole is alone on its line, so both lines are indented.
      {"  {{b}}\nend\n", "  b1\n  b2\nend\n"},
      {"x {{b}}\n", "x b1\nb2\n\n"},  // The hole is not alone on its line.
      {"  {{e}}\nend\n", "end\n"},    // An empty hole removes its line.
      {"x{{e}}\nend\n", "x\nend\n"},
      {"{{#s}}{{a}},{{/s}}", "a0,a1,a2,"},
      {"{{#none}}{{a}}{{/none}}end", "end"},
      {"{{#s}}{{#one}}{{a}}{{/one}} {{/s}}",
       "a0 a1 a2 "},  // A section that is repeated once keeps the outer index.
      {"{\n  {{#s}}\n  x{{a}};\n  {{/s}}\n}\n", "{\n  xa0;\n  xa1;\n  xa2;\n}\n"},
      {"{\n  {{#none}}\n  x;\n  {{/none}}\n}\n", "{\n}\n"},
  };
  for (const auto& row : kTable) EXPECT_EQ(filled_with_values(row.text), row.filled) << row.text;
}

}  // namespace
}  // namespace mc::forge
