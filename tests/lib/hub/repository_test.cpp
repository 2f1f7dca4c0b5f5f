// Which texts name a repository of the Hub, and the line that fetches it.
#include "lib/hub/repository.hpp"

#include <doctest/doctest.h>

using namespace hexad::hub;

TEST_CASE("names with an owner and without, with a revision and without") {
  const auto model = repository_named(Kind::model, "Qwen/Qwen2.5-1.5B");
  REQUIRE(model);
  CHECK(model->id == "Qwen/Qwen2.5-1.5B");
  CHECK(model->folder() == "models--Qwen--Qwen2.5-1.5B");
  CHECK(model->fetch_line() == "hf download Qwen/Qwen2.5-1.5B");
  const auto tagged = repository_named(Kind::model, "gpt2@v1.0");
  REQUIRE(tagged);
  CHECK(tagged->revision == "v1.0");
  CHECK(tagged->folder() == "models--gpt2");
  CHECK(tagged->fetch_line() == "hf download gpt2 --revision v1.0");
  const auto rows = repository_named(Kind::dataset, "openai/gsm8k@main");
  REQUIRE(rows);
  CHECK(rows->folder() == "datasets--openai--gsm8k");
  CHECK(rows->fetch_line() == "hf download openai/gsm8k --repo-type dataset");
}

TEST_CASE("what is no name of the Hub") {
  const std::string long_part(97, 'a');
  for (const std::string& name : {std::string(),
                                  std::string("/nowhere"),
                                  std::string("./owner/name"),
                                  std::string("a/b/c"),
                                  std::string(".."),
                                  std::string("../name"),
                                  std::string("owner/.."),
                                  std::string("owner/a..b"),
                                  std::string("owner--name"),
                                  std::string("owner/name/"),
                                  std::string("owner//name"),
                                  std::string("owner/-name"),
                                  std::string("owner/name."),
                                  std::string("owner/na me"),
                                  std::string("owner/na\nme"),
                                  std::string("owner/name\n"),
                                  std::string("owner/na\x1b[2Jme"),
                                  std::string("owner/n\0me", 10),
                                  std::string("owner/name.git"),
                                  std::string("owner/n\xc3\xa4me"),
                                  std::string("a;b"),
                                  std::string("@main"),
                                  long_part,
                                  "owner/" + long_part}) {
    CAPTURE(name);
    CHECK_FALSE(repository_named(Kind::model, name));
  }
  CHECK(repository_named(Kind::model, std::string(96, 'a') + "/" + std::string(96, 'b')));
}

TEST_CASE("revisions are words of a shell, and no paths") {
  for (const char* good : {"main", "v1.0", "step-1000", "fp16", "0a1b", "_x", "a+b"}) CHECK(is_revision(good));
  for (const char* bad : {"", "refs/pr/1", "..", "a..b", "../main", "-v", ".x", "a b", "a;b", "$(a)", "a\n", "a\x1b",
                          "a'b", "a@b", "\xc3\xa4"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_revision(bad));
  }
  CHECK_FALSE(is_revision(std::string(256, 'a')));
  CHECK(is_commit(std::string(40, 'f')));
  for (const std::string& bad :
       {std::string(39, 'a'), std::string(41, 'a'), std::string(40, 'g'), std::string(40, 'A')})
    CHECK_FALSE(is_commit(bad));
}
