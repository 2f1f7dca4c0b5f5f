#include <algorithm>

#include "lib/text/template/syntax/parser.hpp"

namespace hexad::text::jinja {
namespace {

// Statements of Jinja that load or inherit from other files, or are not on in transformers.
constexpr std::string_view refused[] = {"import",     "include", "from",  "extends", "block",
                                        "autoescape", "do",      "trans", "debug"};

using StatementPtr = std::unique_ptr<const Statement>;

// Counts an enclosing construct while it is parsed.
class Within {
 public:
  explicit Within(int& counter) : counter_(++counter) {}
  ~Within() { --counter_; }

 private:
  int& counter_;
};

}  // namespace

Block Parser::parse() { return parse_until({}, "", 1); }

// Statements up to one of the tags `ends`, whose name token is left to read; without ends, up to the template's end.
Block Parser::parse_until(const std::vector<std::string_view>& ends, std::string_view opener, int line) {
  const Level level(*this);
  Block block;
  for (;;) {
    if (!unknown_.empty()) throw unknown_.front();
    switch (tokens_.peek().kind) {
      case TokenKind::end:
        if (ends.empty()) return block;
        throw SyntaxFault(
            line, fmt::format("{{% {} %}} is not closed: the template ends without {{% {} %}}", opener, ends.back()));
      case TokenKind::data: {
        Token data = tokens_.next();
        block.push_back(std::make_unique<DataStatement>(data.line, std::move(data.text)));
        break;
      }
      case TokenKind::print_begin: {
        const int print_line = tokens_.next().line;
        block.push_back(std::make_unique<PrintStatement>(print_line, parse_tuple()));
        tokens_.expect(TokenKind::print_end, "the end of the expression }}");
        break;
      }
      default:
        tokens_.expect(TokenKind::block_begin, "a statement");
        if (tokens_.at(TokenKind::name) && std::find(ends.begin(), ends.end(), tokens_.peek().text) != ends.end())
          return block;
        block.push_back(parse_statement());
    }
  }
}

StatementPtr Parser::parse_statement() {
  const int line = tokens_.line();
  const std::string tag = tokens_.expect_any_name("the name of a statement");
  if (tag == "if") return parse_if(line);
  if (tag == "for") return parse_for(line);
  if (tag == "set") return parse_set(line);
  if (tag == "with") return parse_with(line);
  if (tag == "macro") return parse_macro(line);
  if (tag == "call") return parse_call(line);
  if (tag == "filter") return parse_filter_block(line);
  if (tag == "break") return parse_jump(line, Flow::break_loop);
  if (tag == "continue") return parse_jump(line, Flow::continue_loop);
  if (tag == "generation") {
    end_statement();
    auto statement = std::make_unique<WithStatement>(line);
    statement->body = parse_until({"endgeneration"}, tag, line);
    tokens_.next();
    end_statement();
    return statement;
  }
  if (tag == "print") {
    auto statement = std::make_unique<PrintStatement>(line, parse_tuple());
    end_statement();
    return statement;
  }
  if (std::find(std::begin(refused), std::end(refused), tag) != std::end(refused)) {
    throw SyntaxFault(line, fmt::format("{{% {} %}} is not available in chat templates", tag));
  }
  if (tag.starts_with("end") || tag == "else" || tag == "elif") {
    throw SyntaxFault(line, fmt::format("{{% {} %}} has no statement that it belongs to", tag));
  }
  throw SyntaxFault(line, fmt::format("unknown statement '{}'", tag));
}

StatementPtr Parser::parse_if(int line) {
  const Within conditional(conditional_depth_);
  auto statement = std::make_unique<IfStatement>(line);
  for (;;) {
    ExpressionPtr condition = parse_tuple(false);
    end_statement();
    statement->branches.emplace_back(std::move(condition), parse_until({"elif", "else", "endif"}, "if", line));
    const Token tag = tokens_.next();
    if (tag.text == "elif") continue;
    if (tag.text == "else") {
      end_statement();
      statement->otherwise = parse_until({"endif"}, "if", line);
      tokens_.next();
    }
    end_statement();
    return statement;
  }
}

StatementPtr Parser::parse_for(int line) {
  auto statement = std::make_unique<ForStatement>(line);
  statement->target = parse_target(false);
  tokens_.expect_name("in");
  statement->iterable = parse_tuple(false);
  if (tokens_.skip_name("if")) statement->condition = parse_expression();
  statement->recursive = tokens_.skip_name("recursive");
  end_statement();
  {
    const Within loop(loop_depth_);
    statement->body = parse_until({"else", "endfor"}, "for", line);
  }
  if (tokens_.next().text == "else") {
    end_statement();
    statement->otherwise = parse_until({"endfor"}, "for", line);
    tokens_.next();
  }
  end_statement();
  return statement;
}

StatementPtr Parser::parse_set(int line) {
  Target target = parse_target(true);
  if (tokens_.skip_symbol("=")) {
    auto statement = std::make_unique<SetStatement>(line);
    statement->target = std::move(target);
    statement->value = parse_tuple();
    end_statement();
    return statement;
  }
  auto statement = std::make_unique<SetBlockStatement>(line);
  statement->target = std::move(target);
  while (tokens_.skip_symbol("|")) statement->filters.push_back(parse_filter());
  end_statement();
  statement->body = parse_until({"endset"}, "set", line);
  tokens_.next();
  end_statement();
  return statement;
}

StatementPtr Parser::parse_with(int line) {
  auto statement = std::make_unique<WithStatement>(line);
  while (!tokens_.at(TokenKind::block_end)) {
    if (!statement->variables.empty()) tokens_.expect_symbol(",");
    Target target;
    target.line = tokens_.line();
    target.name = tokens_.expect_any_name("the name of a variable");
    tokens_.expect_symbol("=");
    statement->variables.emplace_back(std::move(target), parse_expression());
  }
  end_statement();
  statement->body = parse_until({"endwith"}, "with", line);
  tokens_.next();
  end_statement();
  return statement;
}

// (a, b=1): parameters without a default come first.
std::vector<MacroDefinition::Parameter> Parser::parse_parameters() {
  std::vector<MacroDefinition::Parameter> parameters;
  tokens_.expect_symbol("(");
  while (!tokens_.at_symbol(")")) {
    MacroDefinition::Parameter parameter{tokens_.expect_any_name("the name of a parameter"), nullptr};
    if (tokens_.skip_symbol("=")) {
      parameter.fallback = parse_expression();
    } else if (!parameters.empty() && parameters.back().fallback) {
      throw SyntaxFault(tokens_.line(),
                        fmt::format("parameter '{}' without a default follows one with a default", parameter.name));
    }
    if (std::ranges::find(parameters, parameter.name, &MacroDefinition::Parameter::name) != parameters.end())
      throw SyntaxFault(tokens_.line(), fmt::format("duplicate argument '{}' in macro definition", parameter.name));
    parameters.push_back(std::move(parameter));
    if (!tokens_.skip_symbol(",")) break;
  }
  tokens_.expect_symbol(")");
  return parameters;
}

void Parser::parse_macro_body(MacroDefinition& macro, std::string_view end, std::string_view opener, int line) {
  end_statement();
  const int outer_loops = std::exchange(loop_depth_, 0);  // a macro's body cannot break the loop around it
  std::set<std::string> outer_names = std::exchange(seen_names_, {});
  macro.body = parse_until({end}, opener, line);
  tokens_.next();
  end_statement();
  macro.uses_rest = seen_names_.contains("varargs");
  macro.uses_named_rest = seen_names_.contains("kwargs");
  macro.uses_caller = seen_names_.contains("caller");
  seen_names_.merge(outer_names);
  loop_depth_ = outer_loops;
}

StatementPtr Parser::parse_macro(int line) {
  auto statement = std::make_unique<MacroStatement>(line);
  statement->macro.name = tokens_.expect_any_name("the name of a macro");
  statement->macro.parameters = parse_parameters();
  parse_macro_body(statement->macro, "endmacro", "macro", line);
  return statement;
}

StatementPtr Parser::parse_call(int line) {
  auto statement = std::make_unique<CallStatement>(line);
  statement->caller.name = "caller";
  if (tokens_.at_symbol("(")) statement->caller.parameters = parse_parameters();
  ExpressionPtr call = parse_expression();
  if (!dynamic_cast<const Call*>(call.get())) throw SyntaxFault(line, "{% call %} wants a call of a macro");
  statement->call.reset(static_cast<const Call*>(call.release()));
  parse_macro_body(statement->caller, "endcall", "call", line);
  return statement;
}

StatementPtr Parser::parse_filter_block(int line) {
  auto statement = std::make_unique<FilterStatement>(line);
  do {
    statement->filters.push_back(parse_filter());
  } while (tokens_.skip_symbol("|"));
  end_statement();
  statement->body = parse_until({"endfilter"}, "filter", line);
  tokens_.next();
  end_statement();
  return statement;
}

StatementPtr Parser::parse_jump(int line, Flow flow) {
  if (loop_depth_ == 0) {
    throw SyntaxFault(line,
                      fmt::format("{{% {} %}} is not inside a loop", flow == Flow::break_loop ? "break" : "continue"));
  }
  end_statement();
  return std::make_unique<JumpStatement>(line, flow);
}

Target Parser::parse_target(bool with_attribute) {
  const Level level(*this);
  const auto parse_one = [&]() -> Target {
    if (tokens_.skip_symbol("(")) {
      Target inner = parse_target(with_attribute);
      tokens_.expect_symbol(")");
      return inner;
    }
    Target target;
    target.line = tokens_.line();
    target.name = tokens_.expect_any_name("the name of a variable");
    if (with_attribute && tokens_.skip_symbol("."))
      target.attribute = tokens_.expect_any_name("the name of an attribute");
    for (std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (target.name == constant) throw SyntaxFault(target.line, fmt::format("'{}' cannot be assigned to", constant));
    }
    return target;
  };
  Target first = parse_one();
  if (!tokens_.at_symbol(",")) return first;
  Target tuple;
  tuple.line = first.line;
  tuple.parts.push_back(std::move(first));
  while (tokens_.skip_symbol(",") && (tokens_.at(TokenKind::name) || tokens_.at_symbol("(")) &&
         !tokens_.at_name("in")) {
    tuple.parts.push_back(parse_one());
  }
  return tuple;
}

}  // namespace hexad::text::jinja
