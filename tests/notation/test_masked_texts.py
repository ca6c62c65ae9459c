"""Whole texts without secrets: logs, JSON, YAML, scripts, command lines, URLs, headers, private keys."""

from __future__ import annotations

import base64
import json
import random
import time
from itertools import chain

import pytest

from hccl_tools.notation import masking
from tests.support.bulk import for_each
from tests.support.growth import least

TOKENS = {
    "github": "ghp_" + "hushA1b2" * 5,
    "github app": "github_pat_" + "hushA1b2" * 5,
    "gitlab": "glpat-" + "hushA1b2" * 3,
    "hugging face": "hf_" + "hushA1b2" * 4,
    "openai": "sk-proj-" + "hushA1b2" * 4,
    "aws": "AKIAHUSHHUSHHUSHHUSH",
    "aws session": "ASIAHUSHHUSHHUSHHUSH",
    "alibaba": "LTAIhushHUSHhush12",
    "google": "AIza" + "hushA1b2" * 5,
    "slack": "xoxb-1234567890-hushhushhush",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodXNoIn0.hushhushhush",
    "npm": "npm_" + "hushA1b2" * 5,
    "vault": "hvs." + "hushA1b2" * 4,
    "age": "AGE-SECRET-KEY-1" + "HUSHA1B2" * 7,
    "key in base64": base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nhushhushhush\n").decode(),
}
#: Text with a secret, and how it is shown.
SECRETS = [
    ('{"password": "a \\"hush\\" b", "n": 1}', '{"password": "***", "n": 1}'),
    ('{"cmd": "{\\"token\\": \\"hush hush\\"}", "n": 1}', '{"cmd": "{\\"token\\": \\"***\\"}", "n": 1}'),
    ('{"tokens": ["hush", "hush2"]}', '{"tokens": ["***", "***"]}'),
    ('["run", "--token", "hush", "-n"]', '["run", "--token", "***", "-n"]'),
    ('[\n  "run",\n  "--token",\n  "hush"\n]', '[\n  "run",\n  "--token",\n  "***"\n]'),
    ('["sshpass", "-p", "hush", "ssh"]', '["sshpass", "-p", "***", "ssh"]'),
    ('[\n  "sshpass",\n  "-p",\n  "hush",\n  "ssh"\n]', '[\n  "sshpass",\n  "-p",\n  "***",\n  "ssh"\n]'),
    ("password: hush and hush\nuser: me", "password: ***\nuser: me"),
    ("db:\n  - password: 'hush hush' # why\n", "db:\n  - password: '***' # why\n"),
    ("token: |\n  hush\n  hush\nuser: me\n", "token: |\n***user: me\n"),
    ("api_key = '''hush''' x", "api_key = '''***''' x"),
    ('api_key="""hush\nhush""" x', 'api_key="""***""" x'),
    ('{"c": "key=\\"\\"\\"hush\\"\\"\\" x"}', '{"c": "key=\\"\\"\\"***\\"\\"\\" x"}'),
    ('"key=""hush""",1', '"key=""***""",1'),
    ("token:\n  hush\n  hush\nuser: me\n", "token:\n***user: me\n"),
    ("tokens:\n- hush\n- hush\nuser: me\n", "tokens:\n***user: me\n"),
    ("[a]\ntoken =\r\n\thush\n[b]\n", "[a]\ntoken =\r\n***[b]\n"),
    ("- name: TOKEN\n  value:\n    hush\n- name: X", "- name: TOKEN\n  value:\n***- name: X"),
    ("auth:\n  user: me\n  password: hush\n", "auth:\n  user: me\n  password: ***\n"),
    ("export X=1 API_TOKEN=hush,hush lr=2", "export X=1 API_TOKEN=*** lr=2"),
    ("export API_TOKEN=\"hush 'x' hush\"; run", 'export API_TOKEN="***"; run'),
    ("export SSHPASS='hush\nhush'\nrun", "export SSHPASS='***'\nrun"),
    ('TOKEN="hush without an end\nnext', 'TOKEN="***\nnext'),
    ("run --secret -hush --lr 1", "run --secret *** --lr 1"),
    ("run --api-key \\\n  hush --lr 1", "run --api-key \\\n  *** --lr 1"),
    ("Namespace(hf_token='hush', lr=1)", "Namespace(hf_token='***', lr=1)"),
    ("token=b'hush'", "token=b'***'"),
    ("<password>hush</password>", "<password>***</password>"),
    ("machine h login me password hush", "machine h login me password ***"),
    ("Authorization: Token hush hush\nAccept: x", "Authorization: ***\nAccept: x"),
    ("curl -H 'Authorization: ApiKey hush hush' x", "curl -H 'Authorization: ***' x"),
    ("curl -H 'X-Auth-Token: hush' x", "curl -H 'X-Auth-Token: ***' x"),
    ("Cookie: a=hush; b=hush", "Cookie: ***"),
    ("https://h/x?sig=hush%2F&se=2", "https://h/x?sig=***&se=2"),
    ("https://h/x?a=1&X-Amz-Signature=hush", "https://h/x?a=1&X-Amz-Signature=***"),
    ("redis://:hu@sh@h:1/0", "redis://:***@h:1/0"),
    ("postgres://u:hush/hush@h/db", "postgres://u:***@h/db"),
    ("http://u:123@h", "http://u:***@h"),
    ("https://hushhushhushhushhush@h/x", "https://***@h/x"),
    ("http://a:hush@h,http://b:hush@h", "http://a:***@h,http://b:***@h"),
    ("proxy=me:hush@h:3128", "proxy=me:***@h:3128"),
    ("AccountName=x;AccountKey=hush==;EndpointSuffix=y", "AccountName=x;AccountKey=***;EndpointSuffix=y"),
    ("sshpass -p hush ssh -p 22 h", "sshpass -p *** ssh -p 22 h"),
    ("sshpass -phush ssh h", "sshpass -p*** ssh h"),
    ("/usr/bin/sshpass -p 'hush hush' ssh h", "/usr/bin/sshpass -p '***' ssh h"),
    ("mysql -u root -phush db", "mysql -u root -p*** db"),
    ("docker login -u me -p hush h", "docker login -u me -p *** h"),
    ("curl -u me:hush h && curl -ume:hush h", "curl -u me:*** h && curl -ume:*** h"),
    ("curl -sSu me:hush h && curl -4ksume:hush h", "curl -sSu me:*** h && curl -4ksume:*** h"),
    ("ldapsearch -xw hush h", "ldapsearch -xw *** h"),
    ("zip -erP hush x.zip y", "zip -erP *** x.zip y"),
    ("sshpass -phu=sh ssh h", "sshpass -p*** ssh h"),
    ("wget --user me:hush h", "wget --user me:*** h"),
    ("wget --user=me:hush h", "wget --user=me:*** h"),
    ("obsutil config -i=hush -k=hush -e=h", "obsutil config -i=*** -k=*** -e=h"),
    ("redis-cli -h h -a hush ping", "redis-cli -h h -a *** ping"),
    ("wandb login hush", "wandb login ***"),
    ("mc alias set store http://h hush hush2", "mc alias set store http://h *** ***"),
    ("openssl rsa -passin pass:hush -in x", "openssl rsa -passin *** -in x"),
    ('{"name": "HF_TOKEN", "value": "hush hush"}', '{"name": "HF_TOKEN", "value": "***"}'),
    ('{"name":"HF_TOKEN","value":"hush"}', '{"name":"HF_TOKEN","value":"***"}'),
    ("- name: HF_TOKEN\n  value: hush hush\n- name: X\n", "- name: HF_TOKEN\n  value: ***\n- name: X\n"),
    ("setenv OBS_SK hush", "setenv OBS_SK ***"),
    ("set -x HF_TOKEN 'hush hush'; run", "set -x HF_TOKEN '***'; run"),
    ("PGPASSWORD=hush psql -p 5432", "PGPASSWORD=*** psql -p 5432"),
    ("docker run -e HF_TOKEN=hush --env=OBS_AK=hush x", "docker run -e HF_TOKEN=*** --env=OBS_AK=*** x"),
    ("{'api_key': 'hush', 'n': 1}", "{'api_key': '***', 'n': 1}"),
    ('{"Authorization": "Token hush hush"}', '{"Authorization": "***"}'),
    ("curl --data 'user=me&password=hush&x=1' h", "curl --data 'user=me&password=***&x=1' h"),
    ("OBS_ACCESS_KEY_ID=hush OBS_SECRET_ACCESS_KEY=hush", "OBS_ACCESS_KEY_ID=*** OBS_SECRET_ACCESS_KEY=***"),
    ("AZURE_SAS=hush MINIO_ROOT_PASSWORD: hush", "AZURE_SAS=*** MINIO_ROOT_PASSWORD: ***"),
    ("gh\x1b[31mp_" + "hush" * 8 + "\x1b[m end", "***\x1b[m end"),
    ("to\x1b[1mken\x1b[m=hush end", "to\x1b[1mken\x1b[m=*** end"),
    *((f"x {token} y", "x *** y") for token in TOKENS.values()),
]
PLAIN = [
    "docker run -p 8080:80 --user 1000:1000 image",
    "ssh -p 2222 host",
    "curl -so /u/a:b -H a:b -Xu a:b h",
    "mysql -p database",
    "tokens=4096 tokens: 5,120 keys=3 sig=11 token=None use_auth_token=True",
    "max_tokens: 128, eos_token_id=2, --tokenizer llama, tokens_per_second=1e3",
    "--num_key_value_heads=8 --key-len 3 TOKENIZER_PATH=/a/b KEY_FILE=/k",
    "http://10.0.0.1:8080/x@y git@host:x/y ssh://git@host/x http://h/a:b@c",
    "HCCL_SOCKET_IFNAME=eth0 ASCEND_GLOBAL_LOG_LEVEL=1 HCCL_IF_BASE_PORT=60000",
    "[ERROR] HCCL(4001,python3):2026-03-18-10:00:05.000.000 [hccl.cc:1] listen on ip[192.168.1.101]",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "the key is missing",
    "key='' key=\"\" x\n",
    "token:\nuser: me\n",
    "keys:\n  - name: a\n    value: b\n",
    "12:00 cannot read the token:\n  no such file\n",
    '{"name": "MAX_TOKENS", "value": "8"}',
    "set -x PATH /a/b; setenv KEY_FILE /a/b",
    "2026-11-25 INFO key.py:12] loss 0.5 and auth.cc:359: done",
]


@for_each(SECRETS, lambda case: case[0])
def test_secrets_are_masked(case: tuple[str, str]) -> None:
    text, shown = case

    assert masking.text(text) == shown


@for_each(PLAIN, str)
def test_other_texts_stay(text: str) -> None:
    assert masking.text(text) == text


def body(lines: int, width: int = 64) -> list[str]:
    """Lines of a private key that are made up, the last one short."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    chance = random.Random(lines)  # noqa: S311  (no key that is used)
    rows = ["".join(chance.choices(letters, k=width)) for _ in range(lines)]
    return [*rows, "hush" + rows[0][:7] + "="]


def pem(lines: int = 25, kind: str = "RSA PRIVATE KEY", width: int = 64) -> list[str]:
    return [f"-----BEGIN {kind}-----", *body(lines, width), f"-----END {kind}-----"]


PGP = "PGP PRIVATE KEY BLOCK"
PUTTY = ["PuTTY-User-Key-File-2: ssh-rsa", "Encryption: none", "Comment: me", "Private-Lines: 8"]
BLOCKS: dict[str, list[str]] = {
    "pem": pem(),
    "pkcs8": pem(kind="ENCRYPTED PRIVATE KEY"),
    "ed25519": [line for line in pem(1, kind="PRIVATE KEY") if not line.startswith("hush")],
    "openssh": pem(kind="OPENSSH PRIVATE KEY", width=70),
    "headers": [*pem()[:1], "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00", "", *pem()[1:]],
    "pgp": [f"-----BEGIN {PGP}-----", "Version: GnuPG v2", "", *body(40), "=hush", f"-----END {PGP}-----"],
    "ssh2": [
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
        'Comment: "me"',
        *body(9, 70),
        "---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    ],
    "putty": [*PUTTY, *body(7), "Private-MAC: 0123456789abcdef"],
    "openvpn": [
        "-----BEGIN OpenVPN Static key V1-----",
        *["0123456789abcdef" * 2] * 16,
        "-----END OpenVPN Static key V1-----",
    ],
    "30 kB": pem(480),
    "2 MB": pem(20_000),
    "narrow": pem(width=20),
}
PREFIXES = [
    "",
    "[rank 0] ",
    "2026-11-25 10:00:00,123 INFO key.py:12] ",
    "    ",
    "> ",
    "\t",
    "\x1b[36m[rank 3] \x1b[0m",
]


def written(lines: list[str], form: str) -> str:
    """Lines as a text of one of several forms."""
    forms = {
        "newlines": "\n".join(lines),
        "carriage returns": "\r\n".join(lines),
        "JSON text": json.dumps({"a": "\n".join(["x", *lines]), "b": "after"}, indent=1),
        "JSON in JSON": json.dumps(json.dumps({"a": "\n".join(lines), "b": "after"})),
        "JSON list": json.dumps({"a": ["before", *lines, "after"]}, indent=2),
        "JSON list in a line": json.dumps(["before", *lines, "after"]),
        "one line": " ".join(lines),
        "colours": "".join(f"\x1b[32m{line[:9]}\x1b[1m{line[9:]}\x1b[m\n" for line in lines),
    }
    return forms[form]


FORMS = (
    "newlines",
    "carriage returns",
    "JSON text",
    "JSON in JSON",
    "JSON list",
    "JSON list in a line",
    "one line",
    "colours",
)


def leaks(lines: list[str], shown: str) -> list[str]:
    """The lines of a key of which a part is shown."""
    headers = ("--", "Proc-Type", "DEK-Info", "Version", "Comment", "PuTTY", "Encryption", "Private-Lines")
    secret = [line for line in lines if line and not line.startswith(headers)]
    return [line for line in secret if line in shown or (len(line) > 12 and line[4:16] in shown)]


@pytest.mark.slow
@for_each([(name, form) for name in BLOCKS for form in FORMS if name != "2 MB" or form == "newlines"], str)
def test_a_private_key_goes_whole(case: tuple[str, str]) -> None:
    name, form = case
    lines = BLOCKS[name]
    text = f"before the key\n{written(lines, form)}\nafter the key\n"

    shown = masking.text(text)

    assert not leaks(lines, shown)
    assert shown.startswith("before the key\n")
    assert shown.endswith("\nafter the key\n")


@pytest.mark.slow
@for_each([(name, prefix) for name in BLOCKS for prefix in PREFIXES if name != "2 MB" or prefix == "> "], str)
def test_a_private_key_goes_from_prefixed_lines(case: tuple[str, str]) -> None:
    name, prefix = case
    lines = BLOCKS[name]
    for part in (
        lines,
        lines[:-1],
        lines[len(lines) // 3 :],
    ):  # whole, without the end, without the beginning
        text = "".join(f"{prefix}{line}\n" for line in ("loss 0.5 at step 1", *part, "loss 0.25 at step 2"))

        shown = masking.text(text)

        assert not leaks(part, shown), shown[:400]
        assert shown.startswith(f"{prefix}loss 0.5 at step 1\n")
        assert shown.endswith(f"{prefix}loss 0.25 at step 2\n")


@pytest.mark.slow
@for_each([name for name in BLOCKS if name != "putty"], str)
def test_a_cut_key_goes_up_to_what_is_none(name: str) -> None:
    first = BLOCKS[name]
    for lines in (first[:-1], first[: len(first) // 2]):
        text = "\n".join([*lines, "Traceback (most recent call last):", "loss 0.5"])

        assert not leaks(lines, masking.text(text))
        assert masking.text(text).endswith("\nTraceback (most recent call last):\nloss 0.5")
        assert not leaks(lines, masking.text("\n".join(lines)))


@pytest.mark.parametrize("end", [0, 1])
def test_a_key_goes_from_among_the_lines_of_other_ranks(end: int) -> None:
    lines = BLOCKS["pem"][: len(BLOCKS["pem"]) - end]
    others = [f"[rank {number % 7 + 1}] loss {number}" for number in range(10 * len(lines))]
    mixed = chain.from_iterable(
        [f"[rank 0] {line}", *others[10 * number : 10 * number + 10]] for number, line in enumerate(lines)
    )

    assert not leaks(lines, masking.text("\n".join(mixed)))


def test_two_ranks_that_print_keys_at_a_time() -> None:
    both = [BLOCKS["pem"], BLOCKS["openssh"]]
    mixed = chain.from_iterable(
        (f"[rank 0] {one}", f"[rank 1] {other}") for one, other in zip(*both, strict=True)
    )
    shown = masking.text("\n".join(mixed))

    assert not leaks(both[0], shown)
    assert not leaks(both[1], shown)


def test_the_mention_of_a_key_hides_nothing_else() -> None:
    text = "expected -----BEGIN PRIVATE KEY-----, got nothing\nloss 0.5\nthe end of a long line of words\n"

    assert masking.text(text) == text.replace("-----BEGIN PRIVATE KEY-----", "***")


def test_what_comes_after_the_last_line_of_a_cut_key_is_no_part_of_it() -> None:
    key = [*BLOCKS["pem"][:-1], "done"]

    assert masking.text("\n".join(key)) == "***\ndone"


@pytest.mark.parametrize(("others", "is_hidden"), [(20, True), (21, False)])
def test_a_cut_key_ends_where_many_lines_are_no_part_of_it(others: int, is_hidden: bool) -> None:
    between = ["loss 0.5"] * others
    digest = "0123456789abcdef" * 4

    shown = masking.text("\n".join([*BLOCKS["pem"][:2], *between, digest]))

    assert shown == "\n".join(["***", *between, "***" if is_hidden else digest])


ADVERSARIES = [
    *(
        "name: a value: ",
        "name: key value: ",
        "name: cookie, value: ",
        "name ",
        'name:"key", "value":"',
        "setenv ",
        "setenv key ",
        "set -x ",
    ),
    *(
        "a.",
        "key=",
        'key="',
        "key='\n",
        "key='''",
        "key:\n ",
        "key:\n- ",
        "key=[",
        "a://",
        "a://b:c",
        "a://b@",
        " --key ",
        " --key \\\n",
        "eyJ",
        "eyJaaaaaaa-",
    ),
    *(
        "-----BEGIN PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
        "Private-Lines: 1\n",
    ),
    *(
        "Private-MAC: ",
        "b3BlbnNzaC1rZXkt",
        "A" * 64 + "\n",
        "-",
        "-----",
        "---- BEGIN ",
        "\\n",
        "\\",
        '\\"',
        '"',
        "'",
    ),
    *(
        "sshpass ",
        "sshpass -p ",
        'curl "',
        "curl '",
        "mc set a ",
        "login ",
        "login a password ",
        "a:b@",
        "a:",
        "@",
        "key: |\n",
    ),
    *(
        "\x1b[",
        "\x1b[0m",
        "\x1b]",
        "\\u001b[0m",
        "key\t",
        "key ",
        "key  =",
        "<key>",
        "<",
        "key,a",
        "key=,",
        "key=a,b",
        "key=,a ",
    ),
    *(
        "Basic ",
        "Bearer ",
        "keyKey",
        "key_",
        "-key",
        "--user a:b ",
        "[",
        "]",
        "{",
        "KEY-----",
        "KEY ",
        "x-",
        "=",
        "\n",
        "\r",
    ),
]


@pytest.mark.slow
@for_each(
    [(one, before) for one in ADVERSARIES for before in ("", "key=", "-----BEGIN PRIVATE KEY-----\n")], str
)
def test_masking_takes_linear_time(case: tuple[str, str]) -> None:
    one, before = case
    small, large = (before + one * (size // len(one)) for size in (5_000, 20_000))

    # Four times the text costs four times the time, a square 16 times; short times are inexact.
    assert least(lambda: masking.text(large)) < 10 * least(lambda: masking.text(small)) + 0.02


@pytest.mark.slow
def test_the_end_of_a_long_line_is_not_searched_for_each_name() -> None:
    text = 'key="" key=[] ' * 60_000 + "." * (10 << 20)
    began = time.process_time()

    assert masking.text(text) == text
    assert time.process_time() - began < 20  # A few seconds; with a search for each name it is a minute.


@pytest.mark.slow
def test_every_text_is_masked_without_an_error() -> None:
    chance = random.Random(7)  # noqa: S311
    parts = [
        *ADVERSARIES,
        *PLAIN,
        *(text for text, _ in SECRETS),
        "\x1b[31m",
        "\x1b",
        "\ud800",
        "\0",
        " ",
        "\n",
    ]
    for _ in range(2000):
        text = "".join(chance.choice(parts) * chance.choice([1, 1, 1, 2, 30]) for _ in range(8))[:4096]
        masking.arguments([*text.split(" "), text])
