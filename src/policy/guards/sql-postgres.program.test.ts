import { expect, test } from 'vitest'
import { ask, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { compileGuards } from './index.ts'

const expressions = `COALESCE(1, 1)|GREATEST(1, 1)|LEAST(1, 1)|NULLIF(1, 2)|CAST(1 AS int)|CAST(lower('1') AS int)|abs(1)
  |current_date|current_user|session_user|localtime|EXTRACT(day FROM now())|position('a' in 'b')|trim('a')
  |substring('a' from 1)|overlay('a' placing 'b' from 1)|normalize('a')|collation for ('a')|xmlconcat('<a/>')
  |xmlforest(1 AS a)|xmlelement(name a)|xmlserialize(content '<a/>' AS text)|treat(1 AS int)|unnest(ARRAY[1])
  |generate_series(1, 1)|ROWS FROM (COALESCE(1, 1))|ROWS FROM (abs(1))|LATERAL abs(1)`
const names = `coalesce greatest least nullif int4 lower abs current_date current_user session_user localtime extract
  date_part position btrim substring overlay normalize pg_collation_for xmlconcat xmlforest xmlelement xmlserialize treat
  unnest generate_series text date name ?column?`

test('F9: no expression in FROM calls a function by the name that PostgreSQL gives it', async () => {
  await using server = await startPostgres()
  const database = await server.database()
  const guards = (['postgres', 'any'] as const).map((dialect) =>
    compileGuards([{ kind: 'sql', arguments: ['sql'], dialect, readOnly: true }], { server: 'db' }),
  )
  // All attempts in one block, because PostgreSQL takes longer to open a connection than to run one of them.
  const attempts = expressions
    .split(/\s*\|/)
    .flatMap((expression) => names.split(/\s+/).map((name) => `SELECT "${name}".quote_literal FROM ${expression}`))
  await ask(database, 'CREATE TABLE ran (sql text)')
  const tries = attempts.map(
    (sql) => `BEGIN EXECUTE $q$${sql}$q$; INSERT INTO ran VALUES ($q$${sql}$q$); EXCEPTION WHEN others THEN END;`,
  )
  await ask(database, `DO $do$ BEGIN ${tries.join('\n')} END $do$`)
  const ran = await ask<{ sql: string }>(database, 'SELECT sql FROM ran')
  expect(ran.length).toBeGreaterThan(20)
  for (const { sql } of ran) {
    for (const guard of guards)
      await expect(async () => guard?.({ sql }), sql).rejects.toMatchObject({ code: 'UNSAFE_SQL' })
  }
})
