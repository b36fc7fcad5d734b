# SPDX-License-Identifier: Apache-2.0
"""Keys, TLS and the admin address, with the clients that people use, while the server runs."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx
import openai
import pytest

from conftest import StartServer
from support import Server, run_cli, wait_until


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own issuer, and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]
        + ["-keyout", key, "-out", certificate, "-days", "2", "-subj", f"/CN={name}"]
        + ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
        check=True,
        capture_output=True,
    )
    key.chmod(0o600)
    return certificate, key


def add_key(path: Path, *options: str) -> str:
    made = run_cli("api-keys", "add", str(path), *options)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def client(server: Server, key: str, ca: Path) -> openai.OpenAI:
    # A context of its own each time, so that nothing of an earlier connection is kept.
    http = httpx.Client(verify=ssl.create_default_context(cafile=str(ca)))
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=key, http_client=http, max_retries=0, timeout=30
    )


def complete(server: Server, key: str, ca: Path, max_tokens: int = 4) -> int:
    answer = client(server, key, ca).completions.create(
        model=MODEL_NAME, prompt="Hello", max_tokens=max_tokens, extra_body={"ignore_eos": True}
    )
    assert answer.usage is not None
    return answer.usage.completion_tokens


MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1"
SIM = ("--device", "sim", "--tp", "1", "--pp", "1")


@pytest.fixture()
def guarded(start_server: StartServer, tmp_path: Path) -> tuple[Server, str, Path, Path]:
    """A server with keys, TLS and an admin address; a key, the key file and the certificate."""
    certificate, key_file = make_certificate(tmp_path, "first")
    keys = tmp_path / "keys.toml"
    key = add_key(keys, "--name", "test", "--tenant", "web")
    live, live_key = tmp_path / "live.pem", tmp_path / "live.key"
    live.write_bytes(certificate.read_bytes())
    live_key.write_bytes(key_file.read_bytes())
    live_key.chmod(0o600)
    server = start_server(
        *SIM,
        *("--set", f"api.keys={keys}"),
        *("--set", f"api.tls_certificate={live}"),
        *("--set", f"api.tls_key={live_key}"),
        *("--set", "api.admin=127.0.0.1:0"),
    )
    return server, key, keys, certificate


def test_an_openai_client_is_served_over_tls_by_its_key_alone(
    guarded: tuple[Server, str, Path, Path], tmp_path: Path
) -> None:
    server, key, _, ca = guarded
    assert server.url.startswith("https://")
    assert complete(server, key, ca) == 4
    pieces = client(server, key, ca).chat.completions.create(
        model=MODEL_NAME, messages=[{"role": "user", "content": "Hi"}], max_tokens=8, stream=True
    )
    assert list(pieces)[-1].choices[0].finish_reason in {"stop", "length"}
    with pytest.raises(openai.AuthenticationError) as refused:
        complete(server, key[:-1] + ("A" if key[-1] != "A" else "B"), ca)
    assert refused.value.code == "invalid_api_key"
    other_ca, _ = make_certificate(tmp_path, "other")
    with pytest.raises(openai.APIConnectionError):
        complete(server, key, other_ca)

    host, port = server.url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(4096)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        with pytest.raises(ssl.SSLError):
            old.wrap_socket(plain)
    assert complete(server, key, ca) == 4


def test_this_users_commands_need_no_key(guarded: tuple[Server, str, Path, Path]) -> None:
    server, _, _, _ = guarded
    status = server.run_cli("status", "--json")
    assert status.returncode == 0, status.stderr
    answer = server.run_cli("run", "--raw", "Hello", "--max-tokens", "3")
    assert answer.returncode == 0, answer.stderr


def test_commands_reach_a_server_by_address_key_and_issuer(
    guarded: tuple[Server, str, Path, Path],
) -> None:
    server, key, _, ca = guarded
    env = {**os.environ, "BRIGADE_API_KEY": key, "BRIGADE_CA_FILE": str(ca)}
    arguments = ("run", "--raw", "Hello", "--max-tokens", "3", "--http", server.url)
    assert run_cli(*arguments, env=env).returncode == 0
    load = ("bench", "--requests", "4", "--output-tokens", "3", "--http", server.url)
    assert run_cli(*load, env=env).returncode == 0
    untrusted = run_cli(*arguments, env={**os.environ, "BRIGADE_API_KEY": key})
    assert untrusted.returncode != 0 and "certificate verify failed" in untrusted.stderr
    keyless = run_cli(*arguments, env={**os.environ, "BRIGADE_CA_FILE": str(ca)})
    assert keyless.returncode != 0 and "API key" in keyless.stderr


def test_keys_and_certificate_change_under_a_running_stream(
    guarded: tuple[Server, str, Path, Path], tmp_path: Path
) -> None:
    server, key, keys, ca = guarded
    (router,) = server.named("brigade-router")
    stream = client(server, key, ca).completions.create(
        model=MODEL_NAME,
        prompt="Hello",
        max_tokens=2000,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(iter(stream))

    # A new certificate: half of the pair changes nothing, the whole pair counts for new connections.
    new_ca, new_key = make_certificate(tmp_path, "second")
    live, live_key = tmp_path / "live.pem", tmp_path / "live.key"
    live.write_bytes(new_ca.read_bytes())
    wait_until(lambda: "are no pair" in server.log.read_text(), 10, "the half pair is refused")
    assert complete(server, key, ca) == 4
    live_key.write_bytes(new_key.read_bytes())

    def is_served(certificate: Path) -> bool:
        try:
            return complete(server, key, certificate) == 4
        except openai.APIConnectionError:
            return False

    wait_until(lambda: is_served(new_ca), 10, "the new certificate")
    with pytest.raises(openai.APIConnectionError):
        complete(server, key, ca)

    # A revoked key is refused at once, a new one let in; a broken file is refused and named.
    fresh = add_key(keys, "--tenant", "other")
    wait_until(lambda: can_ask(server, fresh, new_ca), 10, "the new key")
    revoked = run_cli("api-keys", "revoke", str(keys), key[4:12])
    assert revoked.returncode == 0, revoked.stderr
    wait_until(lambda: not can_ask(server, key, new_ca), 10, "the revoked key")
    keys.write_text("nonsense")
    router.kill(signal.SIGHUP)
    wait_until(lambda: server.log.read_text().count("keeping the keys") >= 2, 10, "the broken file")
    assert can_ask(server, fresh, new_ca)

    # The stream began before all that.
    assert sum(len(chunk.choices) for chunk in stream) > 1000


def can_ask(server: Server, key: str, ca: Path) -> bool:
    try:
        client(server, key, ca).models.list()
        return True
    except openai.AuthenticationError:
        return False


def test_an_open_address_needs_keys_and_tls(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    add_key(keys)
    for extra in ([], ["--set", f"api.keys={keys}"]):
        refused = run_cli(
            "up", *SIM, "--http", "0.0.0.0:0", "--socket", "tcp://127.0.0.1:0", *extra
        )
        assert refused.returncode != 0
        assert "allow_remote_http" in refused.stderr, refused.stderr


def test_api_keys_are_made_listed_limited_and_revoked(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    key = add_key(
        keys,
        *("--name", "front end", "--tenant", "web", "--scope", "inference", "--scope", "metrics"),
        *("--tokens-per-minute", "5000"),
    )
    assert key not in keys.read_text()
    assert run_cli("api-keys", "tenant", str(keys), "web", "--max-concurrent", "7").returncode == 0
    listed = run_cli("api-keys", "list", str(keys)).stdout
    for word in (key[4:12], "web", "inference,metrics", "5000", "front end", "at most 7"):
        assert word in listed, listed
    assert run_cli("api-keys", "revoke", str(keys), "ffffffff").returncode != 0
    assert run_cli("api-keys", "revoke", str(keys), key[4:12]).returncode == 0
    assert key[4:12] not in run_cli("api-keys", "list", str(keys)).stdout
    assert run_cli("api-keys", "add", str(keys), "--scope", "root").returncode != 0
