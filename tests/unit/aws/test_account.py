from pathlib import Path

import pytest

from k8s_ucp.aws.account import account_file, read_account, write_account
from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.errors import UcpError
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.workspace import StateFolder

ACCOUNT = AwsAccount("http://127.0.0.1:4566", "AKIAKEY", "a-secret", "ucp/demo")


def test_a_written_account_is_read_back_unchanged(tmp_path: Path) -> None:
    file = account_file(StateFolder(tmp_path / "demo"))

    write_account(file, ACCOUNT)

    assert read_account(file) == ACCOUNT
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_no_account_is_read_without_a_simulated_cloud(tmp_path: Path) -> None:
    assert read_account(tmp_path / "aws-account.json") is None


@pytest.mark.parametrize("text", ['{"secret_key": "a-secret"}', "a-secret", "[]"])
def test_a_corrupt_file_is_named_but_not_quoted_in_the_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "aws-account.json"
    file.write_text(text)

    with pytest.raises(UcpError, match="aws-account") as caught:
        read_account(file)

    assert "a-secret" not in f"{caught.value}"


def test_the_repr_of_an_account_omits_its_secret_key() -> None:
    assert "a-secret" not in repr(ACCOUNT)


def test_a_region_of_no_valid_name_is_an_error_of_the_call() -> None:
    """Claims name regions; an exception of the library would never get into their conditions."""
    with pytest.raises(CloudFailed, match=r"DescribeVpcs: .*'EU West'") as caught:
        ACCOUNT.call("ec2", "EU West", "DescribeVpcs")
    assert caught.value.certain
