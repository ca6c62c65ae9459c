"""Recognise a table that a program printed in its own notation in place of JSON.

The parser takes such a text for JSON with many faults, and its remedy for the first leads to the next one.
"""

from __future__ import annotations

import re

from hccl_tools.document.other_content import OtherContent
from hccl_tools.notation.hint import FILES

#: The characters of a text in which the notation shows, and those in which a key of a table must be.
_HEAD, _SEARCHED = 400, 1 << 16
_TABLE_KEY = re.compile(r"\b(server_list|rank_list|group_list|server_group_list)\b")
#: A call around an object, or values with calls: OrderedDict([...]), RankTable(version=...), tensor(2).
_PYTHON_CALL = re.compile(
    r"\s*(?:[A-Za-z_]\w*\s*=\s*)?"
    r"(?:[A-Za-z_][\w.]*\((?:\[\s*\(\s*'|<class |[A-Za-z_]\w*=|\[?\s*\{\s*')|\[?\s*\{\s*')",
    re.ASCII,
)
_CALL = re.compile(r"(?<![\w.'\"])(?:[A-Za-z_][\w.]*)\(", re.ASCII)
_PYTHON_NAME = re.compile(r"\s*[A-Za-z_]\w*\s*=\s*\[?\s*\{\s*'", re.ASCII)
_PERL = re.compile(r"\s*\$\w+\s*=\s*[{\[]")
_PHP = re.compile(
    r"\s*(?:<\?php\s+)?(?:return\s+|\$\w+\s*=\s*)?(?:array\s*\(|\[\s*'\w+'\s*=>)", re.IGNORECASE
)
_GO = re.compile(r"\s*&?(?:map\[\w+:|\{[\w.]+ \S+ \[)")
_POWERSHELL = re.compile(r"\s*@\{\s*\w+\s*=")
_JAVA = re.compile(r"\s*\{\w+=[^\s{}\[\]\"',=]+(?:, |\})")
_LUA = re.compile(r"\s*(?:return\s+|(?:local\s+)?\w+\s*=\s*)?\{\s*\w+\s*=\s*[\"'{\d]")
_TOML = re.compile(r"^[ \t]*\[\[[\w.]+\]\][ \t]*$", re.MULTILINE)
_HCL = re.compile(r"^[ \t]*\w+[ \t]*=[ \t]*[\[{]", re.MULTILINE)
_SETTING = re.compile(r"\s*(?:#[^\n]*\n\s*)*\w+[ \t]*=[ \t]*[\"\d]")
_RUBY = re.compile(r"\s*\{\s*[:\"']?\w+[\"']?\s*=>")
_EVALUATE = (
    "python3 -I -c 'import ast, json, re, sys; f = lambda n: "
    "({k.arg: f(k.value) for k in n.keywords} if n.keywords else "
    '(dict if "Dict" in ast.dump(n.func) else lambda v: v)(f(n.args[-1]))) if isinstance(n, ast.Call) else '
    "{f(k): f(v) for k, v in zip(n.keys, n.values)} if isinstance(n, ast.Dict) else "
    "[f(x) for x in n.elts] if isinstance(n, (ast.List, ast.Tuple)) else ast.literal_eval(n); "
    't = re.sub(r"<class [^<>]*>, ?|^\\s*\\w+\\s*=\\s*(?=[{\\[])", "", sys.stdin.read()); '
    'json.dump(f(ast.parse(t.strip(), mode="eval").body), sys.stdout, indent=4)\' < ' + FILES
)
#: Numbers with the name of their type, as numpy prints them: np.int64(3).
_NUMPY = re.compile(r"\b(?:np\.|numpy\.)?u?int(?:8|16|32|64)\(", re.ASCII)
_OF_2_0 = re.compile(r"['\"]version['\"]\s*:\s*['\"]2\.0")
_FROM_TOML = (
    "python3 -I -c 'import json, sys, tomllib; "
    "json.dump(tomllib.load(sys.stdin.buffer), sys.stdout, indent=4)' < " + FILES
)
_FROM_JAVA = r"""sed -E 's/([A-Za-z_]+)=/"\1":/g; s/:([^][{}",]+)/:"\1"/g' """ + FILES


def recognise(text: str) -> OtherContent | None:
    """Return in which notation a text has a rank table; None if in none that is known."""
    if _TABLE_KEY.search(text, 0, _SEARCHED) is None:
        return None
    head = text[:_HEAD]
    if _PYTHON_CALL.match(head) and (_CALL.search(text, 0, _SEARCHED) or _PYTHON_NAME.match(head)):
        return _of_python(text)
    if _PERL.match(head) and "=>" in head:
        return _in("as Perl prints it", "write it with encode_json of JSON::PP in that program")
    if _PHP.match(head):
        return _in("as PHP prints it", "write it with json_encode in that program")
    if _GO.match(head):
        return _in("as Go prints it", "write it with json.Marshal in that program")
    if _POWERSHELL.match(head):
        return _in("as PowerShell prints it", "write it with ConvertTo-Json -Depth 10 in that program")
    if _RUBY.match(head):
        keys = (
            'write "server_list" in place of :server_list and so on, and '
            if re.match(r"\s*\{\s*:", head)
            else ""
        )
        return _in(
            "as Ruby prints it, with => in place of colons",
            f"{keys}write : in place of each =>: sed 's/ *=> */: /g' {FILES}",
        )
    if _JAVA.match(head):
        return _in(
            "as Java prints it", f"write it with a JSON library in that program, or convert it: {_FROM_JAVA}"
        )
    if _TOML.search(text, 0, _SEARCHED) and _SETTING.match(head):
        return _in("in TOML", f"convert it (Python 3.11 or later): {_FROM_TOML}")
    if _SETTING.match(head) and _HCL.search(text, 0, _SEARCHED):
        return _in("in HCL, as Terraform reads it", "write it with jsonencode in Terraform")
    if _LUA.match(head):
        return _in(
            "in Lua or a like notation, with = in place of colons",
            "write it with a JSON library in the program that made it",
        )
    return None


def _of_python(text: str) -> OtherContent:
    """Return that Python printed a table; numbers of numpy are strings in all versions but 2.0."""
    numpy = _NUMPY.search(text, 0, _SEARCHED)
    if numpy is None:
        return _in(
            "as Python prints it", f"write it with json.dump in that program, or convert it: {_EVALUATE}"
        )
    how, command = "int(...)", _EVALUATE
    if not _OF_2_0.search(text, 0, _SEARCHED):
        how, command = "str(int(...))", _EVALUATE.replace("lambda v: v)", "str)")
    return _in(
        f"as Python prints it, with numbers of numpy ({numpy[0]}...))",
        f"write it with json.dump in that program, and each of these numbers as {how}; or convert it: "
        f"{command}",
    )


def _in(how: str, hint: str) -> OtherContent:
    return OtherContent(f"this is a rank table {how}; HCCL reads only JSON", hint)
