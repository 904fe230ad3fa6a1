"""A replica over https: the certificates that the system trusts decide, and nothing else."""

from tls_front import TlsFront


def test_a_replica_over_https_is_used_only_where_its_certificate_is_trusted(
    sqld, make_daemon, calls_of, tmp_path, monkeypatch
):
    with TlsFront(sqld.port, tmp_path) as front:
        options = ("--set", f"sync.url={front.url}")
        suspicious = calls_of(make_daemon(*options, name="suspicious").start())
        assert suspicious("POST", "/api/sync").refusal()[:2] == (502, "replica_tls")

        monkeypatch.setenv("SSL_CERT_FILE", str(front.certificate))
        trusting = calls_of(make_daemon(*options, name="trusting").start())
        key = trusting.store("Ana prefers tea")["id"]
        assert trusting.ok("POST", "/api/sync")["synced"]
    assert sqld.query("SELECT id FROM cold_memories") == [[key]]
