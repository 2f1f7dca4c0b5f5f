#!/usr/bin/env python3
"""The math environment against math-verify, on thousands of answers.

    python benchmarks/peer_math_verify.py --verdicts build/dev/bin/math_verdicts \\
        [--golden tests/plugins/environment/math/math_verify_pairs.json]

Run by a Python that has math-verify, latex2sympy2_extended and sympy; `ninja -C build/dev math_verdicts` builds the
program. Both judge the same (gold, response) pairs as NeMo-RL's HFVerifyWorker does: gold in a \\boxed{} as LaTeX, the
response as plain numbers and LaTeX, an exception as 0. Prints the pairs, agreement and both sides' time a class, then
every difference. --golden writes the pairs with math-verify's verdicts for the test that reads them; pairs on which
its verdict hangs on a time-out, and so on the machine, are left out of the file and counted.
"""
import argparse
import collections
import importlib.metadata
import json
import logging
import multiprocessing
import random
import subprocess
import time

PACKAGES = ["math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime"]
SLOW_S = 4.0  # math-verify gives up after 5 s of reading, and of comparing

# Ways in which a response states the answer @.
FRAMES = [
    "$@$", "\\boxed{@}", "The answer is $@$.", "So we get $\\boxed{@}$.", "$$@$$", "\\[@\\]", "\\(@\\)",
    "The final answer is $@$. I hope it is correct.", "Thus, the final answer is: \\boxed{@}", "Answer: $@$",
    "First $1+1=2$, then $7$; the answer is $@$",
    "\\boxed{7} is wrong, so in the end of this long story it is \\boxed{@}", "**Answer:** \\boxed{@}",
    "We have\n\n\\[\n\\boxed{@}\n\\]\n\nas wanted.", "$x=@$", "\\fbox{@}", "@", "= @", "the answer: @",
    "Final answer is @. I hope it is correct.",
]
# Answers in classes. Each class is lists of forms; forms of one list say the same (to a reader), other lists another.
ANSWERS = {
    "integers": [
        ["5", "+5", "05", "5.0", "5.00", "\\text{5}", "5.", "(5)", "{5}", "\\{5\\}", "[5]", "--5", "2+3", "10/2"],
        ["-5", "\u22125", "- 5", "-5.0", "(-5)", "\\text{-5}"],
        ["0", "-0", "0.0", "00"],
        ["12", "\\text{12}", "3\\cdot4", "3*4", "3 \\times 4", "4!/2"],
        ["50", "5 0"],
        ["1024", "2^{10}", "2^10", "1,024", "1{,}024", "1\\,024", "1 024", "4^5"],
        ["1000000", "10^6", "10^{6}", "1,000,000", "1E6", "1e6"],
        ["1,234,567", "1234567", "1 234 567"],
        ["99999999999999999999", "10^{20}-1"],
    ],
    "fractions": [
        ["\\frac{1}{2}", "\\dfrac{1}{2}", "\\tfrac12", "\\frac12", "1/2", "0.5", ".5", "50\\%", "0.50",
         "\\frac{2}{4}", "\\cfrac{3}{6}", "\\frac 1 2", "1 / 2", "2^{-1}"],
        ["-\\frac{3}{4}", "\\frac{-3}{4}", "\\frac{3}{-4}", "-3/4", "-0.75", "- \\frac34"],
        ["\\frac{7}{3}", "2\\frac{1}{3}", "2 \\frac13", "7/3", "2.333333", "2.3333333333", "2.33"],
        ["\\frac{1}{3}", "0.333333", "0.33333", "0.3333333333", "33.333333\\%", "0.\\overline{3}", "1/3", "3^{-1}"],
        ["-2\\frac{1}{2}", "-2.5", "-\\frac52", "-5/2"],
        ["\\frac{355}{113}", "355/113", "3.141593", "3.14159292"],
        ["\\frac{10}{4}", "\\frac{5}{2}", "2.5", "2\\frac12"],
        ["\\frac{\\frac12}{3}", "1/6", "\\frac16"],
        ["3:4", "0.75", "\\frac{3}{4}", "75\\%"],
    ],
    "percents": [
        ["50\\%", "50%", "50 \\%", "50 percent", "50\\text{ percent}", "50\\text{percent}", "50 pct", "0.5", "50",
         "\\frac12", "50.0\\%"],
        ["12.5\\%", "12.5%", "0.125", "12.5", "\\frac18", "12 \\frac12\\%"],
        ["100\\%", "1", "1.0", "100"],
        ["-5\\%", "-0.05", "-5", "-5%"],
        ["0.5\\%", "0.005", "0.5", "\\frac{1}{200}"],
        ["33\\frac{1}{3}\\%", "\\frac13", "33.3333333\\%"],
        ["x\\%", "\\frac{x}{100}"],
    ],
    "units": [
        ["5\\text{ cm}", "5 cm", "5", "5\\,\\text{cm}", "5\\mathrm{cm}", "5 \\mathrm{~cm}", "5\\text{ cm}^2",
         "5\\text{ meters}", "5 \\text{ m/s}", "5 units", "5\\mbox{ inches}", "5 hours"],
        ["90^\\circ", "90^{\\circ}", "90", "90°", "90\\text{ degrees}", "90 degrees", "\\frac{\\pi}{2}"],
        ["\\$5", "5\\text{ dollars}", "\\$5.00", "5", "USD 5"],
        ["\\$1,250.50", "1250.5", "1,250.50", "1250.50 dollars"],
        ["12\\text{ hours}", "12", "12 h"],
        ["3\\text{ apples and }4\\text{ pears}", "3"],
        ["7\\text{th}", "7^{\\text{th}}", "7"],
        ["100\\text{ km/h}", "100", "100 kmph"],
        ["5\\text{ cm}^{3}", "5 cm^3", "125"],
    ],
    "surds": [
        ["\\sqrt{12}", "2\\sqrt{3}", "2\\sqrt3", "\\sqrt{3}\\cdot 2", "12^{1/2}", "12^{0.5}", "3.464102", "3.46",
         "\\sqrt 12"],
        ["\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}", "\\sqrt{\\frac12}", "\\frac{\\sqrt2}2", "2^{-1/2}",
         "0.707107", "0.7071"],
        ["1+\\sqrt{3}", "\\sqrt{3}+1", "\\frac{2}{\\sqrt3-1}", "2.732051", "\\sqrt{4+2\\sqrt3}"],
        ["\\sqrt[3]{8}", "2", "8^{1/3}", "8^{\\frac13}"],
        ["\\sqrt[3]{54}", "3\\sqrt[3]{2}", "54^{1/3}", "3 \\cdot 2^{1/3}"],
        ["\\sqrt{2}+\\sqrt{3}", "\\sqrt{5+2\\sqrt6}", "\\sqrt5"],
        ["5\\sqrt{2}", "\\sqrt{50}", "5 sqrt(2)", "7.071068"],
        ["\\sqrt{-4}", "2i", "2I"],
        ["(\\sqrt5-2)^3", "17\\sqrt5-38"],
        ["\\sqrt{16}", "4", "4.0", "\\pm4"],
    ],
    "constants": [
        ["2\\pi", "\\pi 2", "2π", "6.283185", "6.28", "\\pi+\\pi", "2 \\cdot \\pi", "\\frac{4\\pi}{2}"],
        ["\\frac{\\pi}{6}", "\\pi/6", "30^\\circ", "0.523599", "\\arcsin\\frac12"],
        ["e", "\\exp(1)", "2.718282", "e^1"],
        ["e^2", "\\exp(2)", "7.389056", "e^{2}", "e\\cdot e"],
        ["\\ln 2", "\\log_e 2", "0.693147", "-\\ln\\frac12", "\\ln(2)"],
        ["\\log_2 8", "3", "\\log_{2}{8}", "\\frac{\\ln 8}{\\ln 2}"],
        ["\\log 100", "2", "\\log_{10}100"],
        ["\\sin\\frac{\\pi}{6}", "\\frac12", "0.5", "\\cos\\frac{\\pi}{3}"],
        ["\\tan 45", "1"],
        ["\\cos\\frac{\\pi}{5}", "\\frac{1+\\sqrt5}{4}", "0.809017"],
        ["\\infty", "+\\infty", "infinity", "\\text{infinity}"],
        ["-\\infty", "- \\infty"],
        ["\\frac{\\pi^2}{6}", "1.644934"],
        ["\\arctan 1", "\\frac{\\pi}{4}", "\\tan^{-1}1"],
    ],
    "polynomials": [
        ["x^2+2x+1", "(x+1)^2", "(1+x)^2", "x(x+2)+1", "x^{2} + 2 x + 1", "1+2x+x^2", "x^2+1+2\\cdot x"],
        ["x+1", "1+x", "\\frac{x^2-1}{x-1}", "y+1"],
        ["2x", "x+x", "x\\cdot2", "2\\cdot x", "2*x", "2 x"],
        ["(x-1)(x+1)", "x^2-1", "-(1-x)(1+x)"],
        ["\\frac{a}{b}", "a/b", "a b^{-1}"],
        ["3x^2y", "3yx^2", "3x^2 y"],
        ["-x", "-1x", "-1\\cdot x"],
        ["\\frac{x}{2}", "0.5x", "\\frac12x", "x/2"],
        ["x^3-y^3", "(x-y)(x^2+xy+y^2)"],
        ["n(n+1)/2", "\\frac{n(n+1)}{2}", "\\frac{n^2+n}{2}"],
        ["x", "X", "(x)", "\\text{x}"],
        ["abc", "\\text{abc}", "cba", "a b c"],
        ["\\frac{1}{x+1}+\\frac{1}{x-1}", "\\frac{2x}{x^2-1}"],
        ["k", "k+0", "2k/2"],
        ["x_1+x_2", "x_2+x_1", "x_{1}+x_{2}"],
        ["4x^3", "4\\cdot x^{3}", "(2x)^2x"],
    ],
    "functions": [
        ["\\sin^2 x+\\cos^2 x", "1"],
        ["\\sin 2x", "2\\sin x\\cos x", "\\sin(2x)"],
        ["\\tan x", "\\frac{\\sin x}{\\cos x}"],
        ["e^{x+y}", "e^x e^y", "e^{y+x}"],
        ["\\ln(xy)", "\\ln x+\\ln y"],
        ["\\sqrt{x^2}", "|x|", "x"],
        ["\\cos 2x", "1-2\\sin^2x", "2\\cos^2 x-1"],
        ["f(x)", "f(x)", "f(y)"],
        ["f(x)=x^2", "x^2", "y=x^2", "f(x) = x^{2}"],
        ["e^{-x}", "\\frac{1}{e^x}", "\\exp(-x)"],
        ["\\log_2 x", "\\frac{\\ln x}{\\ln2}"],
        ["2^{x+1}", "2\\cdot2^x"],
        ["\\sqrt{x}", "x^{1/2}", "x^{0.5}", "x^{\\frac{1}{2}}"],
        ["|x-1|", "|1-x|"],
        ["\\lfloor x\\rfloor", "\\lfloor x \\rfloor"],
        ["x\\sin x", "\\sin x\\cdot x", "\\sin(x)x"],
        ["\\sinh x", "\\frac{e^x-e^{-x}}{2}"],
        ["\\sec x", "\\frac{1}{\\cos x}"],
    ],
    "sets": [
        ["1,2,3", "3,2,1", "\\{1,2,3\\}", "\\{3, 1, 2\\}", "1, 2, 3", "1, 2 and 3", "1,2\\text{ and }3", "(1,2,3)",
         "\\left\\{1,2,3\\right\\}", "1;2;3", "\\{1,1,2,3\\}"],
        ["1,2", "2,1", "(1,2)", "\\{1,2\\}", "[1,2]", "1\\text{ and }2", "1 or 2", "\\{1;2\\}", "(2,1)"],
        ["\\pm 2", "2,-2", "-2,2", "\\{-2,2\\}", "\\pm2", "2\\text{ or }-2", "x=\\pm2"],
        ["1\\pm\\sqrt2", "1+\\sqrt2,1-\\sqrt2", "\\{1-\\sqrt2,1+\\sqrt2\\}"],
        ["\\emptyset", "\\{\\}", "\\varnothing", "∅", "\\text{none}"],
        ["\\{0.5,1\\}", "\\{\\frac12,1\\}", "1,\\frac12"],
        ["A,B", "B,A", "A, B", "\\{A,B\\}", "\\text{A, B}", "A and B"],
        ["x=1,y=2", "y=2,x=1", "(1,2)", "1,2"],
        ["\\{a,b\\}", "\\{b,a\\}"],
        ["x=5,6", "5,6", "x=5,x=6", "x=5\\text{ or }x=6", "\\{5,6\\}"],
        ["\\{x+1,2x\\}", "\\{2x,1+x\\}"],
        ["\\{1\\}", "1", "[1,1]"],
        ["(1,2),(3,4)", "(3,4),(1,2)", "\\{(1,2),(3,4)\\}"],
    ],
    "tuples": [
        ["(1,2,3)", "(1, 2, 3)", "1,2,3", "\\{1,2,3\\}", "(3,2,1)", "\\left(1,2,3\\right)", "\\langle1,2,3\\rangle",
         "(1.0,2,3)"],
        ["(3,1)", "(1,3)", "3,1", "\\{3,1\\}", "( 3 , 1 )"],
        ["(\\frac12,-1)", "(0.5,-1)", "(1/2,-1)"],
        ["(0,0)", "(0, 0)", "0,0"],
        ["(a,b)", "(b,a)", "(a, b)"],
        ["(x,y)=(1,2)", "(1,2)", "x=1,y=2"],
        ["(2,\\sqrt{4})", "(2,2)"],
    ],
    "intervals": [
        ["(1,2)", "[1,2]", "(1,2]", "(1, 2)", "]1,2[", "\\left(1,2\\right)", "1<x<2", "x\\in(1,2)"],
        ["[0,\\infty)", "[0,+\\infty)", "[0,\\infty]", "x\\ge0", "\\left[0,\\infty\\right)", "(0,\\infty)"],
        ["(-\\infty,1)\\cup(2,\\infty)", "(2,\\infty)\\cup(-\\infty,1)", "\\mathbb{R}\\setminus[1,2]",
         "x<1\\text{ or }x>2"],
        ["\\mathbb{R}", "(-\\infty,\\infty)", "R"],
        ["[\\frac12,1]", "[0.5,1]", "[1/2,1.0]"],
        ["(-\\infty,1)\\cup(1,\\infty)", "\\mathbb{R}\\setminus\\{1\\}", "x\\neq1"],
        ["[1,2]\\cup[2,3]", "[1,3]"],
        ["[1,3]\\cap[2,4]", "[2,3]"],
        ["[-1,1]", "|x|\\le1", "-1\\le x\\le1"],
        ["(0,1]", "0<x\\le1", "0<x\\leq1"],
        ["[2,1]", "[1,2]"],
    ],
    "equations": [
        ["x=5", "5", "5=x", "x = 5", "x=5.0", "y=5", "2x=10", "x-5=0", "x=2+3=5"],
        ["y=2x+1", "2x+1", "y-2x=1", "2x+1=y", "2y=4x+2", "y = 1 + 2x", "y=2x+2", "2x-y+1=0"],
        ["2x+3y=5", "3y+2x=5", "2x+3y-5=0", "4x+6y=10", "5"],
        ["x^2+y^2=1", "y^2+x^2=1", "2x^2+2y^2=2", "x^2=1-y^2"],
        ["x^2=4", "x=\\pm2", "x^2-4=0", "\\{-2,2\\}"],
        ["xy=1", "y=\\frac1x", "yx=1"],
        ["a=b", "b=a", "a-b=0"],
        ["x=1=1", "x=1"],
        ["7=7", "7"],
        ["x\\approx3.14", "3.14", "x=3.14"],
        ["C=2\\pi r", "2\\pi r", "C=2r\\pi"],
        ["k=\\frac{1}{2}", "0.5", "k=0.5", "\\frac12"],
    ],
    "inequalities": [
        ["x>2", "2<x", "x > 2", "(2,\\infty)", "x\\ge2", "x-2>0", "2x>4"],
        ["x\\le3", "x\\leq3", "x \\leqslant 3", "3\\ge x", "(-\\infty,3]", "x≤3"],
        ["1<x<2", "2>x>1", "(1,2)", "x>1\\text{ and }x<2", "1 < x < 2"],
        ["x\\ne1", "x\\neq 1", "1\\ne x"],
        ["x^2<4", "(-2,2)", "-2<x<2"],
        ["x<-1\\text{ or }x>1", "x>1\\text{ or }x<-1"],
        ["-1\\le x<4", "[-1,4)", "-1\\leq x<4"],
        ["a<b", "b>a"],
        ["x^2-3x+2\\ge0", "(-\\infty,1]\\cup[2,\\infty)"],
        ["n\\geq2", "[2,\\infty)", "n\\ge 2"],
        ["|x|<3", "(-3,3)", "-3<x<3"],
    ],
    "matrices": [
        ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{bmatrix}1&2\\\\3&4\\end{bmatrix}",
         "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix}1.0&2\\\\3&4\\end{pmatrix}",
         "\\begin{pmatrix}1&2\\\\3&5\\end{pmatrix}", "\\left(\\begin{matrix}1&2\\\\3&4\\end{matrix}\\right)",
         "\\left[\\begin{matrix}1&2\\\\3&4\\end{matrix}\\right]"],
        ["\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix}1\\\\2\\end{bmatrix}", "(1,2)",
         "\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{array}{c}1\\\\2\\end{array}"],
        ["2\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}2\\\\4\\end{pmatrix}"],
        ["\\begin{pmatrix}\\frac12\\\\0\\end{pmatrix}", "\\begin{pmatrix}0.5\\\\0\\end{pmatrix}",
         "\\begin{pmatrix}1/2\\\\0\\end{pmatrix}"],
        ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}+\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}",
         "\\begin{pmatrix}2&2\\\\3&5\\end{pmatrix}"],
        ["\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", "-2"],
        ["\\begin{pmatrix}x+x\\\\1\\end{pmatrix}", "\\begin{pmatrix}2x\\\\1\\end{pmatrix}"],
    ],
    "choices": [
        ["A", "(A)", "\\text{A}", "\\textbf{A}", "\\mathrm{A}", "\\text{(A)}", "a", "A.", "A)", "\\textbf{(A)}",
         "\\mathbf{A}"],
        ["B", "\\text{B}", "(B)", "b"],
        ["C", "\\text{C}", "c"],
        ["\\text{Yes}", "Yes", "\\text{yes}", "yes"],
        ["\\text{True}", "True"],
        ["E", "\\text{E}", "e"],
        ["\\text{no solution}", "no solution"],
        ["\\text{(A) }5", "A", "5"],
        ["\\text{east}", "east"],
        ["I", "\\text{I}", "i"],
        ["D", "d"],
    ],
    "scientific": [
        ["6.02\\times10^{23}", "6.02\\cdot10^{23}", "6.02E23", "6.02e23", "602000000000000000000000"],
        ["1.5\\times10^3", "1500", "1.5E3", "1.5*10^3", "1.5×10^3"],
        ["10^{-3}", "0.001", "1E-3", "\\frac{1}{1000}"],
        ["2.5\\times10^{-2}", "0.025", "\\frac{1}{40}"],
        ["10^{100}", "10^{99}\\cdot10"],
        ["3\\times10^8", "300000000", "3E8", "300,000,000"],
        ["10^{-20}", "10^{-21}", "0"],
    ],
    "complex": [
        ["3+4i", "4i+3", "3 + 4i", "3+i4", "3 + 4 i", "3+4I"],
        ["i", "I", "\\text{i}", "\\mathrm{i}"],
        ["-i", "- i", "-1i"],
        ["i^2", "-1"],
        ["(1+i)^2", "2i"],
        ["\\frac{1}{i}", "-i"],
        ["e^{i\\pi}", "-1"],
        ["5-12i", "-12i+5"],
        ["\\pm i", "i,-i", "-i,i"],
    ],
    "combinatorics": [
        ["\\binom{5}{2}", "10", "\\frac{5!}{2!3!}", "{5 \\choose 2}"],
        ["5!", "120", "5\\cdot4!"],
        ["100!", "100\\cdot99!"],
        ["\\gcd(12,18)", "6"],
        ["\\lcm(4,6)", "12", "\\operatorname{lcm}(4,6)"],
        ["17\\mod5", "2", "17 \\bmod 5"],
        ["\\max(1,2)", "2"],
        ["\\min(3,1,2)", "1"],
        ["\\lfloor3.7\\rfloor", "3"],
        ["\\lceil3.2\\rceil", "4"],
        ["|-3|", "3"],
        ["\\sum_{i=1}^{10}i", "55"],
        ["\\prod_{k=1}^{5}k", "120"],
        ["\\binom{n}{2}", "\\frac{n(n-1)}{2}"],
        ["2^{100}", "1267650600228229401496703205376"],
        ["7^{2}\\cdot3", "147"],
    ],
    "huge": [
        ["9^{9^{9}}", "9^{9^9}", "9^{387420489}"],
        ["10^{10^{10}}", "10^{10000000000}"],
        ["2^{1000}", "2\\cdot2^{999}", "2^{1000}+1"],
        ["(10^{50}+1)-10^{50}", "1"],
        ["1000000000000000000000000000000000000000000000000000000000000", "10^{60}"],
        ["1000000!", "1"],
        ["2^{-1000}", "0"],
        ["3" * 200,
         "3" * 200,
         "3" * 199 + "4"],
        ["0.33333333333333333333333333333333333333333333333333", "\\frac13"],
    ],
    "broken": [
        ["", "{}"],
        ["\\frac{1}", "1"],
        ["\\frac{1}{0}", "\\frac10"],
        ["((1)", "1"],
        ["1)", "1"],
        ["\\sqrt{}", "0"],
        ["x^", "x"],
        ["5..", "5"],
        ["\\unknown{5}", "5"],
        ["}5{", "5"],
        ["1+", "1"],
        ["=5", "5"],
        ["\\text{", "5"],
        ["\\frac{1}{2}}", "\\frac12"],
        ["{{{{5}}}}", "5"],
        ["\\left(5", "5"],
        ["5 & 6", "5"],
        ["1,,2", "1,2"],
        ["$5$", "5"],
        ["\\boxed{5}", "5"],
        ["??", "??"],
        ["\\", "\\"],
        ["#5", "5"],
        ["5_", "5"],
        ["x_{", "x"],
    ],
    "mixed": [
        ["\\frac{3}{4}\\pi", "\\frac{3\\pi}{4}", "0.75\\pi", "135^\\circ"],
        ["2\\sqrt{2}+3i", "3i+2\\sqrt2"],
        ["\\frac{-1+\\sqrt{5}}{2}", "\\frac{\\sqrt5-1}{2}", "0.618034", "\\frac{\\sqrt{5}}{2}-\\frac{1}{2}"],
        ["\\frac{n^2}{2}", "0.5n^2", "n^2/2"],
        ["30^\\circ", "30", "\\frac{\\pi}{6}"],
        ["\\overline{AB}", "AB", "\\overline{ab}"],
        ["x^{\\prime}", "x"],
        ["\\vec{v}", "v", "\\mathbf{v}"],
        ["\\alpha+\\beta", "\\beta+\\alpha", "α+β"],
        ["2\\frac{1}{2}x", "2.5x", "\\frac52x"],
        ["a^{m+n}", "a^ma^n"],
        ["1:2:3", "1:2:3"],
        ["10\\ 000", "10000"],
        ["12{,}345", "12345", "12,345"],
        ["0,5", "0.5", "\\frac12"],
        ["\\theta", "θ"],
        ["\\Delta", "Δ", "\\delta"],
        ["y'", "y"],
        ["A^T", "A"],
        ["1.\\overline{6}", "\\frac53"],
        ["5\\cdot", "5"],
        ["\\frac{d}{dx}x^2", "2x"],
        ["\\int_0^1x\\,dx", "\\frac12"],
        ["\\lim_{x\\to0}\\frac{\\sin x}{x}", "1"],
        ["x^2+C", "C+x^2"],
        ["\\ln|x|+C", "\\ln |x| + C"],
    ],
}
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
    ("5", "I got \\boxed{4}, but after checking everything very carefully again it turned out that it is really \\boxed{5}"),
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


def judge(pair):
    """math-verify's verdict as NeMo-RL asks for it, and its seconds."""
    from math_verify.errors import TimeoutException
    from math_verify.metric import math_metric
    from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
    logging.disable(logging.CRITICAL)
    metric = math_metric(gold_extraction_target=(LatexExtractionConfig(),),
                         pred_extraction_target=(ExprExtractionConfig(), LatexExtractionConfig()))
    start = time.perf_counter()
    try:
        verdict = float(metric(["\\boxed{" + pair[1] + "}"], [pair[2]])[0])
    except (Exception, TimeoutException):
        verdict = 0.0
    return verdict, time.perf_counter() - start


def ours(program, judged):
    lines = "".join(json.dumps({"gold": gold, "response": response}) + "\n" for _, gold, response in judged)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    return [(float(line.split()[0]), float(line.split()[1]) / 1e6) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", required=True, help="the program math_verdicts")
    parser.add_argument("--golden", help="file to write")
    parser.add_argument("--cache", help="file that keeps math-verify's verdicts between runs")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    judged = pairs(options.seed)
    cache = {}
    if options.cache:
        try:
            cache = {(gold, response): verdict for gold, response, *verdict in json.load(open(options.cache))}
        except FileNotFoundError:
            pass
    missing = [pair for pair in judged if pair[1:] not in cache]
    with multiprocessing.Pool(options.processes) as pool:
        for pair, verdict in zip(missing, pool.imap(judge, missing, chunksize=8)):
            cache[pair[1:]] = verdict
    if options.cache:
        json.dump([[*key, *verdict] for key, verdict in cache.items()], open(options.cache, "w"))
    peer = [cache[pair[1:]] for pair in judged]
    mine = ours(options.verdicts, judged)

    classes = collections.defaultdict(list)
    for pair, a, b in zip(judged, peer, mine, strict=True):
        classes[pair[0]].append((pair, a, b))
    print(" ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES))
    print(f"{'class':<20}{'pairs':>6}{'right':>7}{'differ':>7}{'peer ms':>9}{'ours us':>9}{'worst us':>10}")
    for name, rows in [*classes.items(), ("all", [row for rows in classes.values() for row in rows])]:
        differ = sum(a[0] != b[0] for _, a, b in rows)
        right = sum(a[0] == 1 for _, a, _ in rows)
        peer_s, ours_s = sum(a[1] for _, a, _ in rows) / len(rows), sum(b[1] for _, _, b in rows) / len(rows)
        print(f"{name:<20}{len(rows):>6}{right:>7}{differ:>7}{peer_s * 1e3:>9.1f}{ours_s * 1e6:>9.0f}"
              f"{max(b[1] for _, _, b in rows) * 1e6:>10.0f}")
    for pair, a, b in zip(judged, peer, mine, strict=True):
        if a[0] != b[0]:
            slow = "(slow) " if a[1] > SLOW_S else ""
            print(f"peer {a[0]:.0f} ours {b[0]:.0f} {slow}[{pair[0]}] {pair[1]!r} {pair[2]!r}")
    if options.golden:
        kept = [[*pair, int(a[0])] for pair, a in zip(judged, peer, strict=True) if a[1] <= SLOW_S]
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        with open(options.golden, "w", encoding="utf-8") as file:
            head = {"made_by": "benchmarks/peer_math_verify.py", "versions": versions, "seed": options.seed,
                    "left_out_as_slow": len(judged) - len(kept)}
            file.write(json.dumps(head)[:-1] + ',\n"pairs": [\n')
            file.write(",\n".join(json.dumps(row, ensure_ascii=False) for row in kept) + "\n]}\n")


if __name__ == "__main__":
    main()
