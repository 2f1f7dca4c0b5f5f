"""The pairs (class, gold, response) that benchmarks/peer_math_verify.py has both sides judge."""
import random

from math_pairs.answers import ANSWERS

# Ways in which a response states the answer @.
FRAMES = [
    "$@$", "\\boxed{@}", "The answer is $@$.", "So we get $\\boxed{@}$.", "$$@$$", "\\[@\\]", "\\(@\\)",
    "The final answer is $@$. I hope it is correct.", "Thus, the final answer is: \\boxed{@}", "Answer: $@$",
    "First $1+1=2$, then $7$; the answer is $@$",
    "\\boxed{7} is wrong, so in the end of this long story it is \\boxed{@}", "**Answer:** \\boxed{@}",
    "We have\n\n\\[\n\\boxed{@}\n\\]\n\nas wanted.", "$x=@$", "\\fbox{@}", "@", "= @", "the answer: @",
    "Final answer is @. I hope it is correct.",
]
PLAIN = [  # (gold, response): prose around numbers
    ("12", "There are 12 apples."), ("12", "12 of the 15 apples."), ("3", "I think it is 3, or maybe 4."),
    ("4", "I think it is 3, or maybe 4."), ("1234.5", "It costs $1,234.50 in total."), ("50", "about 50% of them"),
    ("0.5", "about 50% of them"), ("7", "3 + 4 = 7"), ("7", "3+4"), ("7", "answer: 12= 7"), ("12", "Answer: 12 = 12"),
    ("7", "the answer is 7 because 3+4=7 and 2+2=4"), ("2", "Step 1: do it. Step 2: stop."),
    ("5", "The answer is **5**."), ("5", "**5**"), ("-5", "It is -5 degrees"), ("5", "x=5"), ("5", "x = 5"),
    ("3/4", "It is 3/4 of it."), ("0.75", "It is 3/4 of it."), ("10", "10."), ("10", "10:"),
    ("1/2", "The probability is 1/2"), ("100", "1e2"), ("8", "2^3 is the answer"), ("6", "2*3"), ("-1", "2-3"),
    ("15", "(1+2)*5"), ("15", "The result is (1+2)*5."), ("2024", "On 12/25/2024 we"), ("1000", "1 000 people"),
    ("1", "No number one here."), ("A", "The answer is A"), ("A", "The answer is $A$"), ("2.5", "2,5"),
    ("2.5", "2.50 meters"), ("42", "The final answer is 42. I hope it is correct."),
    ("42", "The final answer is 42. I hope so. But 43 is nice."), ("42", "final answer is: 42 I hope"),
    ("\\frac{1}{2}", "The final answer is \\frac{1}{2}"), ("\\frac{1}{2}", "so -\\frac{1}{2}? No, \\frac{1}{2}"),
    ("3", "[3] is it"), ("3", " [3] "), ("7", "Final Answer: The final answer is $7$. I hope it is correct."),
    ("7", "Let $x=3$. The final answer to the question is $7$ and not $8$"), ("9", "x: 3, y: 9"),
    ("0.3", "0.3 + 0.1 - 0.1"), ("3", "3 \\boxed"), ("3", "\\boxed"), ("3", "\\boxed{}"), ("3", "\\boxed{3"),
    ("3", "\\boxed3"), ("3", "\\boxed 3"), ("3", "\\boxed{ 3 }"), ("3", "$\\boxed{3}$, $\\boxed{4}$"),
    ("3,4", "$\\boxed{3}$, $\\boxed{4}$"), ("3,4", "\\boxed{3} and \\boxed{4}"), ("4", "\\boxed{3} and \\boxed{4}"),
    ("3", "\\boxed{3}. Checking again gives \\boxed{3}"),
    ("5", "I got \\boxed{4}, but after checking everything very carefully again it turned out that it is really "
          "\\boxed{5}"),
    ("5", "$4$ and then later on $5$"), ("4,5", "$4$ and $5$"), ("4,5", "$4$, $5$"), ("4,5", "$4$ or $5$"),
    ("5", "$4$,$5$ and 6 more"), ("6", "$4$,$5$ and 6 more"),
    ("1", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"),
    ("5", "5 €"), ("5", "€5"), ("5", "£5.00"), ("007", "7"), ("7", "007"), ("7", "-007"), ("0.1", "1/10"),
    ("5", "5\u00a0kg"), ("٣", "3"), ("3", "３"), ("5", "\u22125"), ("-5", "\u22125"), ("-5", "$\u22125$"), ("5", ""),
    ("5", "\n\n\n"), ("5", "\x00 5"), ("5", "5\n"), ("5", "The answer is 5\n\nBecause 2+3=5\n\nDone"), ("x^2", "x^2"),
    ("x^2", "x^2 is 4"), ("12", "12 x 1"), ("5", "$5"), ("5", "5$"), ("5", "$5$%"), ("0.05", "$5$%"),
    ("5", "$5$ percent"), ("13", "$\\begin{aligned} x &= 6+7 \\\\ &= 13 \\end{aligned}$"),
    ("13", "\\begin{align} x = 13 \\end{align}"), ("6", "$1+2+3=6$"), ("6", "$x=1+2+3=6$"), ("6", "$6=x$"),
    ("5", "```python\nprint(5)\n```"), ("5", "<answer>5</answer>"), ("5", "#### 5"), ("5", "Solution: 5 (five)"),
    ("2", "Twice: 2, 2"), ("100", "$100$ dollars"), ("100", "100 dollars"),
]


def states(frame, answer):
    return frame.replace("@", answer)


def random_number(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return str(rng.randint(-999, 9999))
    if kind == 1:
        a, b = rng.randint(-50, 50), rng.randint(2, 40)
        return rng.choice([f"\\frac{{{a}}}{{{b}}}", f"{a}/{b}", f"{a / b:.4f}", f"{a / b:.8f}",
                           f"\\dfrac{{{2 * a}}}{{{2 * b}}}"])
    if kind == 2:
        return rng.choice(["{:,}", "{}", "{:.1f}"]).format(rng.randint(1000, 9999999))
    if kind == 3:
        a, b = rng.randint(1, 9), rng.randint(2, 30)
        return rng.choice([f"{a}\\sqrt{{{b}}}", f"\\sqrt{{{a * a * b}}}",
                           f"{a}\\cdot\\sqrt{b % 10}", f"{a * b ** 0.5:.6f}"])
    if kind == 4:
        return f"{rng.randint(-9, 9)}{rng.choice(['.', '^'])}{rng.randint(0, 9)}"
    return str(rng.randint(1, 99)) + rng.choice(["%", "\\%", "^\\circ", "!", " cm", "\\pi", "x", "i"])


def random_expression(rng, depth=0):
    if depth > 3 or rng.random() < 0.3:
        return rng.choice(["x", "y", "n", "a", str(rng.randint(1, 12)), "\\pi", "2.5", "-3", "e"])
    a, b = random_expression(rng, depth + 1), random_expression(rng, depth + 1)
    return rng.choice([f"{a}+{b}", f"{a}-{b}", f"({a})({b})", f"\\frac{{{a}}}{{{b}}}",
                       f"({a})^{{{rng.randint(0, 4)}}}", f"\\sqrt{{{a}}}", f"{a}\\cdot {b}", f"\\left({a}\\right)",
                       f"\\sin({a})", f"\\ln {a}", f"{a}, {b}", f"|{a}|", f"{a}={b}", f"{a}{b}"])


def rewritten(rng, text):
    """The same or nearly the same answer in other letters."""
    changes = [("\\frac", "\\dfrac"), ("+", " + "), ("\\cdot ", " \\times "), ("\\left(", "("), ("\\right)", ")"),
               ("x", "y"), ("1", "2"), ("-", "+"), ("(", "\\left("), (")", "\\right)"), ("2", "2.0"), ("\\pi", "π"),
               (" ", "")]
    for old, new in rng.sample(changes, rng.randint(0, 3)):
        text = text.replace(old, new)
    return text


def mutated(rng, text):
    """With a character or two lost, doubled, moved or added: what a tired writer leaves."""
    for _ in range(rng.randint(1, 2)):
        i = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:i] + rng.choice("{}()[],;=+-*/^_ 0123456789xyeidE.%!|<>:&'\\") + text[i:]
        elif kind == 1:
            text = text[:i] + text[i + 1:]
        elif kind == 2:
            text = text[:i] + text[i:i + 1] * 2 + text[i + 1:]
        else:
            text = text[:i] + text[i + 1:i + 2] + text[i:i + 1] + text[i + 2:]
    return text


def pairs(seed):
    rng = random.Random(seed)
    result = []
    for name, groups in ANSWERS.items():
        everything = [form for group in groups for form in group]
        for group in groups:
            for gold in group[:3]:
                for form in group:
                    result.append((name, gold, states(FRAMES[rng.randrange(2)], form)))
                for form in rng.sample(group, min(3, len(group))):
                    result.append((name, gold, states(rng.choice(FRAMES), form)))
                result.append((name, gold, states(rng.choice(FRAMES), rng.choice(everything))))
    result += [("prose", gold, response) for gold, response in PLAIN]
    for _ in range(400):
        gold = random_number(rng)
        frame = rng.choice(FRAMES)
        answer = random_number(rng) if rng.random() < 0.3 else rewritten(rng, gold)
        result.append(("random numbers", gold, states(frame, answer)))
    for _ in range(400):
        gold = random_expression(rng)
        result.append(("random expressions", gold, states(rng.choice(FRAMES[:14]), rewritten(rng, gold))))
    forms = [form for groups in ANSWERS.values() for group in groups for form in group]
    for _ in range(600):  # a space that means nothing keeps the texts apart, so that both sides have to be read
        gold = mutated(rng, rng.choice(forms))
        result.append(("mutations", gold, rng.choice(["$\\;@$", "\\boxed{\\;@}", "$@\\;$"]).replace("@", gold)))
    return list(dict.fromkeys(result))
