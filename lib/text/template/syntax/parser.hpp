// Tokens to a template. The grammar and its precedences are Jinja's; what is missing of Jinja (inheritance, imports) is
// refused by name.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/template/syntax/statement.hpp"
#include "lib/text/template/syntax/token_stream.hpp"

namespace hexad::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  ExpressionPtr parse_expression(bool with_conditional = true);
  // One expression, or several with commas: a tuple.
  ExpressionPtr parse_tuple(bool with_conditional = true);
  ExpressionPtr parse_postfix(ExpressionPtr expression);
  ExpressionPtr parse_primary();
  ArgumentList parse_arguments();
  std::pair<std::string, ArgumentList> parse_filter();

  // Guards a recursion of the parser: templates nest far less than this.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };

  TokenStream tokens_;
  // Filters and tests that do not exist. Inside {% if %} and `a if b` they are errors only when they are reached.
  std::vector<SyntaxFault> unknown_;
  int conditional_depth_ = 0;
  std::set<std::string> seen_names_;  // names read so far in the innermost macro

 private:
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_filters(ExpressionPtr expression);
  ExpressionPtr parse_test(ExpressionPtr expression);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_name();
  void count_chain(int& length) const;
  void require_known(std::string_view name, bool is_filter);

  int depth_ = 0;
};

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;
  Block parse();

 private:
  Block parse_until(const std::vector<std::string_view>& ends, std::string_view opener, int line);
  std::unique_ptr<const Statement> parse_statement();
  std::unique_ptr<const Statement> parse_if(int line);
  std::unique_ptr<const Statement> parse_for(int line);
  std::unique_ptr<const Statement> parse_set(int line);
  std::unique_ptr<const Statement> parse_with(int line);
  std::unique_ptr<const Statement> parse_macro(int line);
  std::unique_ptr<const Statement> parse_call(int line);
  std::unique_ptr<const Statement> parse_filter_block(int line);
  std::unique_ptr<const Statement> parse_jump(int line, Flow flow);
  std::vector<MacroDefinition::Parameter> parse_parameters();
  void parse_macro_body(MacroDefinition& macro, std::string_view end, std::string_view opener, int line);
  Target parse_target(bool with_attribute);
  void end_statement() { tokens_.expect(TokenKind::block_end, "the end of the statement"); }

  int loop_depth_ = 0;
};

}  // namespace hexad::text::jinja
