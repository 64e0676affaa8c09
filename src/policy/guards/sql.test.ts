import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { shown } from '../../../tests/abuse/case.ts'
import {
  ambiguousSql,
  commonSql,
  honestMysql,
  honestSql,
  honestSqlite,
  mysqlAttacks,
  sqlAttacks,
  sqliteAttacks,
} from '../../../tests/abuse/sql.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { ToolwayError } from '../../core/errors.ts'
import { compileGuards } from './index.ts'
import type { GuardConfig } from './selector.ts'
import type { Dialect } from './sql-dialects.ts'

/** Node's types have no WebAssembly. */
declare const WebAssembly: { instantiate(module: object, imports: object): Promise<object> }

const guard = (dialect: Dialect, readOnly: boolean) => {
  const config: GuardConfig = { kind: 'sql', arguments: ['sql', 'all[]'], dialect, readOnly }
  return compileGuards([config], { server: 'database' })!
}
const guards = {
  postgres: guard('postgres', true),
  mysql: guard('mysql', true),
  sqlite: guard('sqlite', true),
  writing: guard('postgres', false),
  any: guard('any', true),
  anyWriting: guard('any', false),
}

const refusal = async (sql: string, kind: keyof typeof guards = 'postgres'): Promise<ToolwayError | undefined> => {
  try {
    await guards[kind]({ sql })
    return undefined
  } catch (error) {
    return error as ToolwayError
  }
}

/** What attacks are refused with. Each is tried once, and several tests look at the answer. */
const answers = new Map<string, Promise<ToolwayError | undefined>>()
const refusalOfAttack = (sql: string): Promise<ToolwayError | undefined> => {
  const answer = answers.get(sql) ?? refusal(sql)
  answers.set(sql, answer)
  return answer
}

/** The rows of a query; undefined if it fails. */
const readAll = (database: DatabaseSync, sql: string) => {
  try {
    return database.prepare(sql).all()
  } catch {
    return undefined
  }
}

describe('SQL guard', () => {
  for (const [why, sql] of sqlAttacks) {
    test(`F9: refused (${why}) ${shown(sql)}`, async () => {
      const error = await refusalOfAttack(sql)
      expect(error).toBeInstanceOf(ToolwayError)
      expect(error?.code).toBe('UNSAFE_SQL')
    })
  }

  for (const [why, sql] of honestSql) {
    test(`F9: passed (${why}) ${shown(sql)}`, async () => {
      expect(await refusal(sql)).toBeUndefined()
    })
  }

  test.each([
    ['DELETE FROM users', 'is DELETE, but only read-only statements are allowed; use SELECT'],
    ['SELECT 1 FROM t FOR UPDATE', 'locks rows; remove FOR UPDATE and FOR SHARE'],
    ['SELECT 1; SELECT 2', 'contains 2 SQL statements; send one at a time'],
    ['SELECT 1 FROM', 'has a syntax error at character 14; write one PostgreSQL statement'],
    ["SELECT 'hunter2", 'has a syntax error at character 8; write one PostgreSQL statement'],
    [
      'SELECT app.purge()',
      'calls app.purge, which is not a built-in function known to have no side effects; remove it',
    ],
    ['WITH d AS (DELETE FROM t) SELECT 1', 'contains DELETE, but only read-only statements are allowed'],
    ['SELECT x.f FROM pi() x', 'has "x.f", which may call a function; list the function\'s columns: AS x(column, …)'],
    [
      'SELECT t.id FROM t, greatest(1, 2)',
      'has "t.id", which may call a function, because an expression in FROM has no alias; add one: AS x(column)',
    ],
  ])('F9: %j gets an error that says what is wrong with it', async (sql, reason) => {
    expect((await refusal(sql))?.message).toBe(`The argument "sql" ${reason}.`)
  })

  test('F9: no refusal repeats the literals of a statement', async () => {
    for (const [, sql] of sqlAttacks) {
      const error = await refusalOfAttack(sql)
      for (const secret of ['/etc/passwd', 'evil', 'admin = true']) expect(error?.message).not.toContain(secret)
    }
  })

  test('F9: the guard still works after statements that overflow the parser', async () => {
    // A module that is kept after an overflow breaks for good at about the thirtieth.
    await refusal('SELECT a FROM t')
    const instances = vi.spyOn(WebAssembly, 'instantiate')
    onTestFinished(() => instances.mockRestore())
    const { numRuns } = runs(3, 33)
    for (let attempt = 0; attempt < numRuns; attempt++) {
      expect((await refusal(`SELECT ${'1+'.repeat(10_000)}1`))?.message).toContain('nested too deeply')
      expect(await refusal('SELECT a FROM t')).toBeUndefined()
    }
    expect(instances).toHaveBeenCalledTimes(numRuns)
    expect((await refusal('DROP TABLE t'))?.message).toContain('is DROP')
  })

  test('F9: a statement that overflows the parser does not disturb those beside it', async () => {
    const deep = `SELECT ${'1+'.repeat(10_000)}1`
    const all = await Promise.all(
      Array.from({ length: 6 }, (_, index) => refusal(index % 2 ? deep : 'SELECT a FROM t')),
    )
    expect(all.map((error) => error?.code)).toEqual(all.map((_, index) => (index % 2 ? 'UNSAFE_SQL' : undefined)))
  })

  test('F9: statements of one call are measured together', async () => {
    const all = Array.from({ length: 8 }, () => `SELECT '${'x'.repeat(10_000)}'`)
    await expect(Promise.resolve(guards.postgres({ all }))).rejects.toThrow('more than 64 KiB of SQL')
    await guards.postgres({ all: all.slice(0, 6) })
  })
})

describe('SQL guard where writing is allowed', () => {
  test.each([
    "INSERT INTO t VALUES ('a;b')",
    'UPDATE t SET a = f(1)',
    'WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d',
    'CREATE TABLE t (a int)',
    'COPY t TO STDOUT',
    'SELECT 1',
  ])('F9: passed %j', async (sql) => {
    expect(await refusal(sql, 'writing')).toBeUndefined()
  })

  test.each([
    'INSERT INTO t VALUES (1); DROP TABLE t',
    'DO $$ BEGIN DELETE FROM a; DELETE FROM b; END $$',
    "COPY t FROM PROGRAM 'sh'",
    "COPY t TO '/tmp/x'",
    "LOAD 'evil'",
    'ALTER SYSTEM SET x = 1',
    'not sql',
  ])('F9: refused %j', async (sql) => {
    expect((await refusal(sql, 'writing'))?.code).toBe('UNSAFE_SQL')
  })
})

describe('SQL guard of other dialects', () => {
  test.each(mysqlAttacks)('F9: MySQL refused (%s) %j', async (_why, sql) => {
    expect((await refusal(sql, 'mysql'))?.code).toBe('UNSAFE_SQL')
  })
  test.each(sqliteAttacks)('F9: SQLite refused (%s) %j', async (_why, sql) => {
    expect((await refusal(sql, 'sqlite'))?.code).toBe('UNSAFE_SQL')
  })
  test.each(honestMysql)('F9: MySQL passed (%s) %j', async (_why, sql) => {
    expect(await refusal(sql, 'mysql')).toBeUndefined()
  })
  test.each(honestSqlite)('F9: SQLite passed (%s) %j', async (_why, sql) => {
    expect(await refusal(sql, 'sqlite')).toBeUndefined()
  })
  test.each([
    'SELECT data FROM [fsdir] WHERE path = 1',
    'SELECT data FROM `fsdir` WHERE path = 1',
    'SELECT * FROM [main].[pragma_optimize]',
  ])('F9: SQLite refused in its own quotes %j', async (sql) => {
    expect((await refusal(sql, 'sqlite'))?.code).toBe('UNSAFE_SQL')
  })
  test('F9: tables of another database may be named like functions of SQLite', async () => {
    expect(await refusal('SELECT * FROM fsdir', 'postgres')).toBeUndefined()
    expect(await refusal('SELECT * FROM fsdir', 'mysql')).toBeUndefined()
  })
  test('F9: no pragma that may be read as a table changes a database of SQLite', async () => {
    using database = new DatabaseSync(':memory:')
    database.exec('CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1), (2)')
    const pragmas = database.prepare('SELECT DISTINCT name FROM pragma_pragma_list').all()
    const settings = () =>
      pragmas.flatMap(({ name }) =>
        /_check$|_list$|optimize|vacuum|memory/.test(`${name}`) ? [] : [readAll(database, `PRAGMA ${name}`)],
      )
    const before = [settings(), readAll(database, 'SELECT * FROM sqlite_master')]
    let passed = 0
    for (const { name } of pragmas) {
      for (const where of ['', "WHERE arg = '1'", "WHERE arg = 't'", "WHERE arg = 'wal'"]) {
        const sql = `SELECT * FROM pragma_${name} ${where}`
        const answers = [await refusal(sql, 'sqlite'), await refusal(sql, 'any')].map((error) => error?.code)
        assert.equal(answers[0], answers[1], sql)
        if (answers[0] !== undefined) continue
        passed++
        readAll(database, sql)
        assert.deepEqual([settings(), readAll(database, 'SELECT * FROM sqlite_master')], before, sql)
      }
    }
    expect(passed).toBeGreaterThan(40)
    expect((await refusal('SELECT * FROM pragma_optimize', 'sqlite'))?.code).toBe('UNSAFE_SQL')
  })
  test('F9: the error names the dialect', async () => {
    expect((await refusal('SELECT 1 --x', 'mysql'))?.message).toContain(
      'that MySQL and the gateway may parse differently',
    )
  })
  test('F9: a declared dialect is read by that one alone', async () => {
    const sql = "SELECT '\\'' ; DROP TABLE t --'"
    expect(await refusal(sql, 'postgres')).toBeUndefined()
    expect((await refusal(sql, 'mysql'))?.code).toBe('UNSAFE_SQL')
    expect(await refusal(sql, 'sqlite')).toBeUndefined()
    expect(await refusal("SELECT 'it\\'s fine' FROM t", 'mysql')).toBeUndefined()
    expect((await refusal("SELECT '\\'; DROP TABLE t; -- '", 'sqlite'))?.message).toContain('2 SQL statements')
  })
})

describe('SQL guard without a declared dialect', () => {
  test.each([...ambiguousSql, ...mysqlAttacks, ...sqliteAttacks])('F9: refused (%s) %j', async (_why, sql) => {
    expect((await refusal(sql, 'any'))?.code).toBe('UNSAFE_SQL')
  })
  test('F9: every attack on PostgreSQL is refused as well', async () => {
    for (const [, sql] of sqlAttacks.filter(([why]) => why !== 'deep')) {
      expect((await refusal(sql, 'any'))?.code, sql).toBe('UNSAFE_SQL')
    }
  })
  test.each(commonSql)('F9: passed (%s) %j', async (_why, sql) => {
    expect(await refusal(sql, 'any')).toBeUndefined()
  })
  test.each([
    "INSERT INTO t VALUES ('a;b', 'it''s')",
    'INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2',
    'UPDATE t SET a = f(1)',
    'MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE',
    'CREATE TABLE t (a int REFERENCES b ON DELETE CASCADE)',
  ])('F9: passed where writing is allowed %j', async (sql) => {
    expect(await refusal(sql, 'anyWriting')).toBeUndefined()
  })
  test.each([
    "INSERT INTO t VALUES ('\\'); DROP TABLE t; -- ')",
    'INSERT INTO t SELECT 1 delete FROM users',
    'INSERT INTO t VALUES (1) /*! ; DROP TABLE t */',
  ])('F9: refused where writing is allowed %j', async (sql) => {
    expect((await refusal(sql, 'anyWriting'))?.code).toBe('UNSAFE_SQL')
  })
  test('F9: the refusal names the position and the setting', async () => {
    const error = await refusal("SELECT '\\'' ; DROP TABLE t --'", 'any')
    expect(error?.message).toMatch(/from character 8; .*`dialect`/)
    expect(error?.message).not.toContain('DROP')
  })
})
