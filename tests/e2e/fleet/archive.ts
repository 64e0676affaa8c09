import { toolway } from '../../../src/cli/kit.fixture.ts'
import { ask } from '../../fixtures/postgres.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import type { Outcome } from './load.ts'

/** Waits until PostgreSQL has the end of every call that was answered. */
export async function allArrived(database: string, outcomes: readonly Outcome[]): Promise<void> {
  const answered = outcomes.filter(({ failure }) => failure === undefined).map(({ mark }) => mark)
  let missing: readonly string[] = answered
  const look = async () => {
    // The end of a call leads to its beginning, which has the arguments.
    const rows = await ask<{ words: string }>(
      database,
      `SELECT b.words FROM toolway.records r
       JOIN toolway.records b ON b.chain = r.chain AND b.seq = r.begin_seq WHERE r.phase = 'after'`,
    ).catch(() => [])
    const text = rows.map(({ words }) => words).join('\n')
    const there = new Set(text.match(/load[\w-]*\./g))
    missing = answered.filter((mark) => !there.has(mark))
    return missing.length === 0
  }
  await until(look, { what: 'all answered calls in PostgreSQL' }).catch((error) => {
    throw new Error(`${error.message}; missing: ${missing.length}, such as ${missing.slice(0, 3)}`)
  })
}

/** What is wrong with the records of all replicas: with their chains, or with the order in which they were appended. */
export async function archiveFaults(database: string, configFile: string, cwd: string): Promise<readonly unknown[]> {
  const words = ['audit', 'verify', '--postgres', '--json', '--config', configFile]
  const { stdout, stderr } = await toolway(words, { cwd, env: process.env })
  if (stdout === '') return [stderr]
  const { ok, problems = [] } = JSON.parse(stdout) as { ok: boolean; problems?: readonly unknown[] }
  const misplaced = await ask(
    database,
    `SELECT chain, seq FROM (
       SELECT chain, seq, position, lag(position) OVER (PARTITION BY chain ORDER BY seq) AS before FROM toolway.records
     ) AS r WHERE before > position`,
  )
  return [...(ok ? [] : ['it does not verify']), ...problems, ...misplaced]
}

interface Found {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly source: 'postgres' | 'local'
}

/** Operations whose arguments have this text, as the admin API of a replica tells of them. */
export async function search({ url, token }: Endpoint, text: string): Promise<Found> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(new URL(`/admin/api/audit?limit=500&text=${text}`, url), { headers })
  return (await answer.json()) as Found
}
