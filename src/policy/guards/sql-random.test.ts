import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { compileGuards } from './index.ts'

const check = compileGuards([{ kind: 'sql', arguments: ['sql'], dialect: 'postgres', readOnly: true }], {
  server: 'db',
})!
const refusal = async (sql: string): Promise<ToolwayError | undefined> => {
  try {
    await check({ sql })
    return undefined
  } catch (error) {
    return error as ToolwayError
  }
}

describe('SQL guard and random queries', () => {
  const name = fc.constantFrom('a', 'users', '"Order Items"', 'public.t', 'x1', 'größe', '"select"')
  const column = fc.constantFrom('id', 't.id', 'u."Full Name"', '"delete"', 'public.t.id')
  const literal = fc.constantFrom(
    '1',
    '-2.5',
    "'it''s; DROP'",
    '$$;$$',
    'NULL',
    'true',
    "E'\\n'",
    '$1',
    "date '2020-01-01'",
  )
  const gap = fc.constantFrom(' ', '\n', '\t', ' /* ; DELETE */ ', ' -- x\n')
  const { query } = fc.letrec<{ expression: string; query: string }>((tie) => ({
    expression: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      column,
      literal,
      fc
        .tuple(
          tie('expression'),
          fc.constantFrom('+', '=', '<>', 'AND', 'OR', '||', 'LIKE', '->>', 'IS DISTINCT FROM'),
          tie('expression'),
        )
        .map(([a, operator, b]) => `(${a} ${operator} ${b})`),
      fc
        .tuple(fc.constantFrom('lower', 'COUNT', 'coalesce', 'pg_catalog.abs', 'jsonb_build_object'), tie('expression'))
        .map(([f, a]) => `${f}(${a})`),
      tie('expression').map((a) => `CASE WHEN ${a} THEN 1 ELSE 2 END`),
      tie('expression').map((a) => `CAST(${a} AS text)`),
      tie('query').map((q) => `(${q})`),
      tie('query').map((q) => `EXISTS (${q})`),
      fc.tuple(tie('expression'), tie('expression')).map(([a, b]) => `(${a} IN (${b}, 2))`),
    ),
    query: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc
        .tuple(fc.array(tie('expression'), { minLength: 1, maxLength: 3 }), name, tie('expression'), gap)
        .map(([list, from, where, space]) => `SELECT${space}${list.join(', ')} FROM${space}${from} WHERE ${where}`),
      fc
        .tuple(name, name, tie('expression'))
        .map(([a, b, on]) => `sElEcT DISTINCT * FROM ${a} AS t LEFT JOIN ${b} AS u ON ${on} ORDER BY 1 LIMIT 5`),
      fc.tuple(tie('query'), tie('query')).map(([a, b]) => `(${a}) UNION ALL (${b})`),
      fc.tuple(tie('query'), tie('query')).map(([a, b]) => `WITH w AS (${a}) SELECT * FROM (${b}) AS n`),
      tie('query').map((q) => `SELECT q.* FROM (${q}) AS q`),
      fc
        .tuple(tie('expression'), name)
        .map(
          ([a, from]) => `SELECT ${a}, sum(1) OVER (PARTITION BY ${a}) FROM ${from} GROUP BY 1 HAVING ${a} IS NOT NULL`,
        ),
    ),
  }))

  test('F9: every query over plain tables passes', async () => {
    await fc.assert(
      fc.asyncProperty(query, fc.constantFrom('', ';', ' ; -- end'), async (sql, end) => {
        expect(await refusal(sql + end), sql).toBeUndefined()
      }),
      runs(100, 20_000),
    )
  })

  test('F9: wherever a side effect hides in a query, it is found', async () => {
    const effect = fc.constantFrom(
      'pg_sleep(1)',
      'PG_CATALOG . "pg_sleep" (1)',
      "nextval('s')",
      "('/x'::text).pg_read_file",
      '(WITH d AS (DELETE FROM t RETURNING 1) SELECT * FROM d)',
      '(SELECT 1 FROM t FOR UPDATE)',
      '(SELECT x.pg_sleep FROM pi() AS x)',
    )
    await fc.assert(
      fc.asyncProperty(query, effect, fc.nat(), async (sql, hidden, place) => {
        const places = [...sql.matchAll(/\b(WHERE|ON|HAVING|THEN|SELECT)(?= )/gi)]
        const at = places[place % places.length]!
        const word = at[0].toUpperCase()
        const end = at.index + at[0].length
        const joint = word === 'SELECT' ? ', ' : word === 'THEN' ? ' IS NULL OR true AND ' : ' IS NULL AND '
        // In the list of a SELECT DISTINCT the word stands between.
        const head = /^ DISTINCT/i.exec(sql.slice(end))?.[0] ?? ''
        const changed = `${sql.slice(0, end)}${head} ${hidden}${joint}${sql.slice(end + head.length)}`
        const error = await refusal(changed)
        expect(error?.code, changed).toBe('UNSAFE_SQL')
        expect(error?.message, changed).not.toContain('syntax error')
      }),
      runs(100, 20_000),
    )
  })
})
