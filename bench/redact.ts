import { createRedactor } from '../src/audit/redact/redactor.ts'

const keys = ['*token*', '*password*', '*secret*', '*authorization*', '*api_key*', '*apiKey*']
const random = (seed: number, length: number) =>
  Array.from({ length }, (_, index) => (((seed + 1) * 7919 * (index + 31)) % 36).toString(36)).join('')

const prose = 'The quick brown fox reads /srv/data/report-2026.md and counts 42 lines of it, "carefully". '
const cases: Record<string, unknown> = {
  prose: { path: '/srv/data/report.md', content: prose.repeat(11), lines: 12 },
  code: { sql: "SELECT id, name FROM people WHERE age >= 21 AND city = 'Berlin' ORDER BY name; ".repeat(13) },
  'JSON text': { body: JSON.stringify(Array.from({ length: 12 }, (_, id) => ({ id, name: prose.slice(0, 60) }))) },
  escapes: { text: 'C:\\Users\\me\\file %20 and "quotes" \\n '.repeat(28) },
  'many members': Object.fromEntries(Array.from({ length: 40 }, (_, id) => [`field_${id}`, `value ${id}`])),
}

const microseconds = (redactor: ReturnType<typeof createRedactor>, value: unknown): number => {
  const size = JSON.stringify(value).length / 1024
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 8; round++) {
    const rounds = 2000
    const start = performance.now()
    for (let count = 0; count < rounds; count++) redactor.value(value)
    best = Math.min(best, ((performance.now() - start) * 1000) / rounds / size)
  }
  return best
}

for (const count of [0, 10, 100, 1000]) {
  const secrets = Array.from({ length: count }, (_, seed) => `key-${seed}-${random(seed, 32)}`)
  const before = performance.now()
  const redactor = createRedactor({ secrets, keys })
  const built = performance.now() - before
  const costs = Object.entries(cases).map(([name, value]) => `${name} ${microseconds(redactor, value).toFixed(1)} µs`)
  process.stdout.write(`redact: ${count} secrets: ${costs.join(', ')} per KiB; built in ${built.toFixed(0)} ms\n`)
}
