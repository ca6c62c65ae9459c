"""Secrets do not stand in plans: not in what is printed, not in what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hccl_tools.notation import masking
from hccl_tools.notation.secret_names import is_secret


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["", "run", "", "--token", ""], ["", "run", "", "--token", ""]),
        (["--token", "abc", "--lr", "1"], ["--token", "***", "--lr", "1"]),
        (["--token", "--lr", "1"], ["--token", "--lr", "1"]),
        (["--password=x y", "-api_key=z"], ["--password=***", "-api_key=***"]),
        (["https://u:pw@host/x?token=abc&y=1"], ["https://u:***@host/x?token=***&y=1"]),
        (["export TOKEN=abc; PASS='a b' run --key k"], ["export TOKEN=***; PASS='***' run --key ***"]),
        (['{"password": "x y", "a": 1}'], ['{"password": "***", "a": 1}']),
        (["db.password=abc", "hf_" + "a" * 20], ["db.password=***", "***"]),
        (["Authorization: Bearer abcdefgh"], ["Authorization: ***"]),
        (
            ["curl", "--user", "u:PW", "-u", "u:PW", "-uu:PW"],
            ["curl", "--user", "u:***", "-u", "u:***", "-uu:***"],
        ),
        (["curl", "--user=u:PW, of words"], ["curl", "--user=u:***"]),
        (
            ["docker", "run", "--user", "1000:1000", "-p", "80:80"],
            ["docker", "run", "--user", "1000:1000", "-p", "80:80"],
        ),
        (["run", "--secret", "-VALUE", "-n", "2"], ["run", "--secret", "***", "-n", "2"]),
        (["run", "--secret", "-n", "2"], ["run", "--secret", "-n", "2"]),
        (["sshpass", "-p", "X", "ssh", "-p", "22"], ["sshpass", "-p", "***", "ssh", "-p", "22"]),
        (["sh", "-c", "sshpass -p X ssh -p 22 h"], ["sh", "-c", "sshpass -p *** ssh -p 22 h"]),
        (["https://h/x?sig=a%2F&se=1"], ["https://h/x?sig=***&se=1"]),
        (["PASSWORD=a b;c", "lr=1"], ["PASSWORD=***", "lr=1"]),
        (["--max-tokens", "8", "--token-id", "x"], ["--max-tokens", "8", "--token-id", "x"]),
        (["-----BEGIN RSA PRIVATE KEY-----\nabc"], ["***"]),
        (["--tokenizer", "llama", "--eos-token-id", "2"], ["--tokenizer", "llama", "--eos-token-id", "2"]),
        (["--num_key_value_heads=8", "the token of it"], ["--num_key_value_heads=8", "the token of it"]),
    ],
)
def test_arguments(argv: list[str], shown: list[str]) -> None:
    assert masking.arguments(argv) == shown


SECRET_NAMES = """
SSHPASS APITOKEN ACCESSTOKEN AUTHKEY PRIVATEKEY JWT TOKENS KEYS SESSION SAS HF_TOKEN_VALUE
OBS_ACCESS_KEY_ID OBS_AK OBS_SK OBS_SECRET_ACCESS_KEY MINIO_ROOT_PASSWORD MINIO_SECRET_KEY S3_SECRET
AZURE_STORAGE_KEY AZURE_CLIENT_SECRET AZURE_SAS AWS_SESSION_TOKEN ID_TOKEN DBPASS userpwd
GITHUBTOKEN HCCL_TOOLS_JOB_KEY ASCEND_AUTH X-Amz-Signature WANDB_API_KEY X-Auth-Token
SharedAccessSignature AccountKey HUAWEICLOUD_SDK_SK apiKey
""".split()  # noqa: SIM905
PLAIN_NAMES = """
TOKEN_ID MAX_TOKENS TOKENIZER_PATH KEY_LEN TMUX_SESSION XDG_SESSION_ID DESKTOP_SESSION
HCCL_SOCKET_IFNAME MONKEY BYPASS HCCL_WHITELIST_DISABLE ASCEND_GLOBAL_LOG_LEVEL
ASCEND_RT_VISIBLE_DEVICES HCCL_TOOLS_JOB_KEY_FILE PASSWORD_FILE PAD_TOKEN num_key_value_heads
query_key_value key_padding_mask tokens_per_second past_key_values HF_HUB_DISABLE_IMPLICIT_TOKEN
SECRET_NAME AUTH_URL token_type KEYWORDS COMPASS TURKEY PATHS
""".split()  # noqa: SIM905


def test_names() -> None:
    assert [name for name in SECRET_NAMES if not is_secret(name)] == []
    assert [name for name in PLAIN_NAMES if is_secret(name)] == []
    shown = masking.variables(dict.fromkeys([*SECRET_NAMES, *PLAIN_NAMES], "hush"))
    assert {name for name, value in shown.items() if value == "***"} == set(SECRET_NAMES)


def test_variables() -> None:
    secret = ("HF_TOKEN", "WANDB_KEY", "ASCEND_AUTH", "DB_PWD", "apiToken", "AWS_ACCESS_KEY_ID", "PASSWD")
    plain = ("KEYBOARD", "PWD", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "RANK_ID")

    shown = masking.variables(dict.fromkeys((*secret, *plain), "abc"))

    assert shown == {**dict.fromkeys(secret, "***"), **dict.fromkeys(plain, "abc")}
    assert masking.variables({"http_proxy": "http://u:p@h:1"}) == {"http_proxy": "http://u:***@h:1"}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a.", "key=", 'key="', "a://", " --key ", "eyJ", "-----BEGIN PRIVATE KEY"])
def test_masking_takes_linear_time(text: str) -> None:
    began = time.process_time()
    masking.text(text * (1_000_000 // len(text)))

    assert time.process_time() - began < 60  # the square of a million steps takes hours


def test_plans_hold_no_secret_and_ranks_get_them_all() -> None:
    launch = [sys.executable, "-m", "hccl_tools", "launch", "--no-table", "-n", "1", "--start", "table"]
    typed = ["--env", "ASCEND_AUTH=hush1", "--env", "URL=ftp://me:hush2@h", "--no-python"]
    program = ["sh", "-c", 'echo "$ASCEND_AUTH $URL $*"', "sh", "--token", "hush3", "--password=hush4"]

    shown = [
        subprocess.run([*launch, *dry, *typed, *program], capture_output=True, text=True, check=True).stdout
        for dry in (["--dry-run"], ["--dry-run=json"])
    ]
    done = subprocess.run([*launch, *typed, *program], capture_output=True, text=True, check=True)

    run_dir = Path("log/latest").resolve()
    kept = [path.read_text() for path in run_dir.iterdir() if path.name != "rank_0.log"]
    assert not [text for text in (*shown, *kept, done.stderr) if "hush" in text]
    assert done.stdout == "hush1 ftp://me:hush2@h --token hush3 --password=hush4\n"
    argv = json.loads((run_dir / "plan.json").read_text())["processes"][0]["argv"]
    assert argv[-3:] == ["--token", "***", "--password=***"]
