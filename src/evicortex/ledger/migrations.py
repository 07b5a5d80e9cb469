"""Numbered, append-only migrations, each applied with its record in one transaction.

A migration that was released is never edited: its digest is recorded in every file that it
made, and a file whose record differs is refused. Times are microseconds since the epoch, UTC.
Digests are lower-case hexadecimal SHA-256.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import apsw

from evicortex.errors import CorruptLedgerError, LedgerVersionError, NotALedgerError

APPLICATION_ID = 0x45764C31
"""``EvL1``: marks the file as an EviCortex ledger (SQLite header, offset 68)."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; ``sql`` is a script of several statements."""

    version: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """The SHA-256 of the script."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


_RECORDS = """
CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
"""

_FOUNDATION = """
CREATE TABLE namespaces (
    namespace_id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (namespace_id BETWEEN 1 AND 8388607),
    name TEXT NOT NULL UNIQUE,
    next_position INTEGER NOT NULL DEFAULT 1 CHECK (next_position BETWEEN 1 AND 1099511627776),
    next_claim INTEGER NOT NULL DEFAULT 1,
    next_audit INTEGER NOT NULL DEFAULT 1,
    generation INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    session_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (namespace_id, session_id),
    UNIQUE (namespace_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE actors (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    actor_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (namespace_id, actor_id),
    UNIQUE (namespace_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE evidence (
    row_id INTEGER PRIMARY KEY CHECK (row_id >> 40 = namespace_id AND row_id & 1099511627775 > 0),
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    evidence_id TEXT NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    actor_id INTEGER,
    role TEXT,
    session_id INTEGER,
    source TEXT,
    external_id TEXT,
    occurred_at INTEGER,
    recorded_at INTEGER NOT NULL,
    authority TEXT NOT NULL,
    metadata TEXT NOT NULL,
    FOREIGN KEY (namespace_id, actor_id) REFERENCES actors,
    FOREIGN KEY (namespace_id, session_id) REFERENCES sessions
) STRICT;
CREATE UNIQUE INDEX evidence_by_id ON evidence (namespace_id, evidence_id);
CREATE UNIQUE INDEX evidence_by_external_id ON evidence (namespace_id, external_id)
    WHERE external_id IS NOT NULL;
CREATE INDEX evidence_by_session ON evidence (namespace_id, session_id)
    WHERE session_id IS NOT NULL;
CREATE INDEX evidence_by_actor ON evidence (namespace_id, actor_id)
    WHERE actor_id IS NOT NULL;

CREATE TABLE claims (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    seq INTEGER NOT NULL,
    claim_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    predicate_key TEXT NOT NULL,
    object_key TEXT NOT NULL,
    polarity TEXT NOT NULL CHECK (polarity IN ('positive', 'negative')),
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    authority TEXT NOT NULL,
    cardinality TEXT NOT NULL CHECK (cardinality IN ('single', 'multi')),
    declared INTEGER NOT NULL CHECK (declared IN (0, 1)),
    origin TEXT NOT NULL CHECK (origin IN ('call', 'extraction')),
    repetition INTEGER NOT NULL CHECK (repetition >= 1),
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, seq),
    UNIQUE (namespace_id, claim_id),
    CHECK (valid_to IS NULL OR valid_to > valid_from)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_key ON claims (namespace_id, subject_key, predicate_key);
CREATE INDEX claims_by_predicate ON claims (namespace_id, predicate_key);
CREATE INDEX claims_declared ON claims (namespace_id, predicate_key, seq) WHERE declared = 1;

CREATE TABLE retractions (
    namespace_id INTEGER NOT NULL,
    claim_id TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('call', 'reextraction')),
    PRIMARY KEY (namespace_id, claim_id),
    FOREIGN KEY (namespace_id, claim_id) REFERENCES claims (namespace_id, claim_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE claim_evidence (
    namespace_id INTEGER NOT NULL,
    claim_id TEXT NOT NULL,
    row_id INTEGER NOT NULL REFERENCES evidence,
    start INTEGER,
    stop INTEGER,
    evidence_digest TEXT NOT NULL,
    PRIMARY KEY (namespace_id, claim_id, row_id),
    FOREIGN KEY (namespace_id, claim_id) REFERENCES claims (namespace_id, claim_id),
    CHECK ((start IS NULL AND stop IS NULL) OR (start >= 0 AND stop > start))
) STRICT, WITHOUT ROWID;
CREATE INDEX claim_evidence_by_row ON claim_evidence (row_id);

CREATE TABLE extractions (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    row_id INTEGER NOT NULL REFERENCES evidence,
    ordinal INTEGER NOT NULL,
    extractor_id TEXT NOT NULL,
    extractor_revision TEXT NOT NULL,
    evidence_digest TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    abstained INTEGER NOT NULL CHECK (abstained IN (0, 1)),
    diagnostics TEXT NOT NULL,
    usage TEXT NOT NULL,
    PRIMARY KEY (namespace_id, row_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX extractions_by_row ON extractions (row_id);

CREATE TABLE extraction_claims (
    namespace_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL,
    extraction INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    claim_id TEXT NOT NULL,
    start INTEGER,
    stop INTEGER,
    confidence REAL NOT NULL,
    authority TEXT NOT NULL,
    PRIMARY KEY (namespace_id, row_id, extraction, ordinal),
    FOREIGN KEY (namespace_id, row_id, extraction)
        REFERENCES extractions (namespace_id, row_id, ordinal),
    FOREIGN KEY (namespace_id, claim_id) REFERENCES claims (namespace_id, claim_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX extraction_claims_by_claim ON extraction_claims (namespace_id, claim_id);

CREATE TABLE audit (
    entry_id INTEGER PRIMARY KEY CHECK (entry_id = namespace_id << 40 | position),
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    position INTEGER NOT NULL,
    event TEXT NOT NULL,
    payload TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE TABLE pending_purges (
    purge_id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    recorded_at INTEGER NOT NULL
) STRICT;

CREATE TABLE watermarks (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    projection TEXT NOT NULL,
    row_id INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, projection)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector_profiles (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    profile_id INTEGER NOT NULL,
    digest TEXT NOT NULL,
    profile TEXT NOT NULL,
    PRIMARY KEY (namespace_id, profile_id),
    UNIQUE (namespace_id, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector_versions (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces,
    version INTEGER NOT NULL,
    rewritten INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    namespace_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('evidence', 'claim')),
    item INTEGER NOT NULL,
    part INTEGER NOT NULL,
    start INTEGER,
    stop INTEGER,
    profile_id INTEGER NOT NULL,
    input_digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    FOREIGN KEY (namespace_id, profile_id) REFERENCES vector_profiles (namespace_id, profile_id)
) STRICT;
CREATE UNIQUE INDEX vectors_by_item ON vectors (namespace_id, kind, item, part);
CREATE INDEX vectors_by_profile ON vectors (namespace_id, profile_id);

CREATE TABLE sentence_profiles (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    profile_id INTEGER NOT NULL,
    identity TEXT NOT NULL,
    dimensions INTEGER NOT NULL CHECK (dimensions >= 1),
    profile TEXT NOT NULL,
    PRIMARY KEY (namespace_id, profile_id),
    UNIQUE (namespace_id, identity)
) STRICT, WITHOUT ROWID;

CREATE TABLE sentence_vectors (
    row_id INTEGER PRIMARY KEY REFERENCES evidence CHECK (row_id >> 40 = namespace_id),
    namespace_id INTEGER NOT NULL,
    profile_id INTEGER NOT NULL,
    input_digest TEXT NOT NULL,
    spans BLOB NOT NULL,
    vectors BLOB NOT NULL,
    FOREIGN KEY (namespace_id, profile_id) REFERENCES sentence_profiles (namespace_id, profile_id)
) STRICT;
CREATE INDEX sentence_vectors_by_profile ON sentence_vectors (namespace_id, profile_id);

CREATE TABLE time_mentions (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    row_id INTEGER NOT NULL CHECK (row_id >> 40 = namespace_id),
    start INTEGER NOT NULL CHECK (start >= 0),
    stop INTEGER NOT NULL CHECK (stop > start),
    begins_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL CHECK (ends_at > begins_at),
    granularity TEXT NOT NULL,
    relative INTEGER NOT NULL CHECK (relative IN (0, 1)),
    open_year INTEGER NOT NULL CHECK (open_year IN (0, 1)),
    PRIMARY KEY (namespace_id, row_id, start)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE lexical USING fts5(
    namespace,
    terms,
    tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\\]^_`{|}~'"
);
INSERT INTO lexical(lexical, rank) VALUES ('secure-delete', 1);

ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('extraction_claims', 'extraction_claims', '1000000 100000 2 2 1'),
    ('extraction_claims', 'extraction_claims_by_claim', '1000000 100000 2');
"""

MIGRATIONS: tuple[Migration, ...] = (Migration(1, "foundation", _FOUNDATION),)

SCHEMA_VERSION = MIGRATIONS[-1].version


def state(connection: apsw.Connection, path: str) -> int:
    """Return the schema version of a file; 0 when it is empty and may become a ledger.

    Raises:
        NotALedgerError: the file is no SQLite database, or another program's.
        LedgerVersionError: a newer program wrote it.
        CorruptLedgerError: its record of migrations is not this program's.
    """
    if connection.in_transaction:
        return _state(connection, path)
    # One snapshot: another process may be making the file a ledger between two of the looks.
    connection.execute("BEGIN")
    try:
        return _state(connection, path)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _state(connection: apsw.Connection, path: str) -> int:
    try:
        application = connection.pragma("application_id")
        version = connection.pragma("user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    except apsw.NotADBError as error:
        raise NotALedgerError(f"{path} is not a SQLite database; name another file") from error
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise NotALedgerError(f"{path} belongs to another program; name another file")
    if version > SCHEMA_VERSION:
        raise LedgerVersionError(
            f"{path} has schema version {version}, this program knows up to "
            f"{SCHEMA_VERSION}; upgrade evicortex"
        )
    _check_records(connection, path, version)
    return int(version)


def _check_records(connection: apsw.Connection, path: str, version: int) -> None:
    recorded = list(
        connection.execute("SELECT version, name, digest FROM migrations ORDER BY version")
    )
    expected = [(m.version, m.name, m.digest) for m in MIGRATIONS if m.version <= version]
    if recorded != expected:
        raise CorruptLedgerError(
            f"{path} was made by other migrations than this program's: it records "
            f"{[row[:2] for row in recorded]} up to version {version}"
        )


def migrate(connection: apsw.Connection, path: str, *, applied_at: int) -> int:
    """Bring a file to the newest schema, one transaction per migration; return its version.

    ``applied_at`` is in microseconds since the epoch. Two processes may call this at once:
    each step looks at the version again under the write lock.

    Raises:
        NotALedgerError, LedgerVersionError, CorruptLedgerError: as :func:`state`.
    """
    for migration in MIGRATIONS[state(connection, path) :]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            current = state(connection, path)
            if current < migration.version:
                _apply(connection, migration, applied_at, new=current == 0)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return state(connection, path)


def _apply(
    connection: apsw.Connection, migration: Migration, applied_at: int, *, new: bool
) -> None:
    if new:
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute(_RECORDS)
    connection.execute(migration.sql)
    connection.execute(
        "INSERT INTO migrations (version, name, digest, applied_at) VALUES (?, ?, ?, ?)",
        (migration.version, migration.name, migration.digest, applied_at),
    )
    connection.pragma("user_version", migration.version)
