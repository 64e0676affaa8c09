import { chmodSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { indexFile } from './index-file.ts'
import { logFolder, start } from './log.fixture.ts'
import { type AuditQuery, openSearch } from './search.ts'

const minute = 60_000
const nobody = 65_534

async function searched(folder: string, query: AuditQuery = {}) {
  using search = openSearch({ folder })
  await search.catchUp()
  return [...search.query(query)]
}
const calls = async (folder: string, query: AuditQuery = {}) => (await searched(folder, query)).map(({ call }) => call)

describe('F11: the index is derived from the log', () => {
  test('a damaged index, one of another version or no database at all is made again', async () => {
    await using log = await logFolder()
    for (let number = 0; number < 500; number++) log.write({ call: `c${number}`, arguments: { n: number } })
    expect(await calls(log.folder)).toHaveLength(500)
    const index = indexFile(log.folder)
    writeFileSync(index, 'no database, but long enough to look like something '.repeat(100))
    expect(await calls(log.folder)).toHaveLength(500)

    const { DatabaseSync } = await import('node:sqlite')
    const other = new DatabaseSync(index)
    other.exec('PRAGMA user_version = 999; CREATE TABLE future (x)')
    other.close()
    expect(await calls(log.folder)).toHaveLength(500)

    const bytes = readFileSync(index)
    for (let at = 4096; at < bytes.length; at += 4096) bytes.fill(0xff, at, at + 2048)
    writeFileSync(index, bytes)
    rmSync(`${index}-wal`, { force: true })
    const again = () => calls(log.folder)
    expect(await again().catch(again)).toHaveLength(500)
  })

  test('an index that is ahead of its files, or beside other ones, is made again', async () => {
    await using log = await logFolder()
    log.write({ call: 'a' })
    const size = statSync(log.path()).size
    log.write({ call: 'b' })
    expect(await calls(log.folder)).toEqual(['b', 'a'])
    truncateSync(log.path(), size)
    expect(await calls(log.folder)).toEqual(['a'])
    log.write({ call: 'instead' })
    expect(await calls(log.folder)).toEqual(['instead', 'a'])
    const changed = readFileSync(log.path(), 'utf8')
      .replaceAll('"instead"', '"another"')
      .replace(/[0-9a-f]{64}"}\n$/, `${'f'.repeat(64)}"}\n`)
    writeFileSync(log.path(), changed)
    expect(await calls(log.folder)).toEqual(['another', 'a'])
  })

  test('segments and lanes that retention removes disappear from it', async () => {
    await using log = await logFolder()
    const first = log.path()
    log.write({ call: 'old', arguments: { x: 'needle' } })
    log.write({ call: 'across', open: true, arguments: { x: 'needle' } })
    log.rotate()
    log.put({ call: 'across', agent: 'dev', operation: 'call_tool', phase: 'after', decision: 'ALLOW' }, start + minute)
    log.write({ call: 'new', at: start + 2 * minute })
    log.write({ call: 'elsewhere', lane: '2', at: start + 3 * minute })
    expect(await calls(log.folder)).toEqual(['elsewhere', 'new', 'across', 'old'])
    rmSync(first)
    expect(await searched(log.folder)).toMatchObject([{ call: 'elsewhere' }, { call: 'new' }, { call: 'across' }])
    expect(await calls(log.folder, { text: 'needle' })).toEqual([])
    rmSync(join(log.folder, '2'), { recursive: true })
    expect(await calls(log.folder)).toEqual(['new', 'across'])
    rmSync(join(log.folder, '1'), { recursive: true })
    expect(await calls(log.folder)).toEqual([])
  })

  test('an incomplete line is read once it is complete, and a line that is not a record is skipped', async () => {
    await using log = await logFolder()
    log.write({ call: 'a' })
    const whole = readFileSync(log.path())
    writeFileSync(log.path(), Buffer.concat([whole, Buffer.from('{"half')]))
    expect(await calls(log.folder)).toEqual(['a'])
    writeFileSync(log.path(), Buffer.concat([whole, Buffer.from('{"half": 1}\n[]\nnull\n')]))
    log.write({ call: 'b', at: start + minute })
    expect(await calls(log.folder)).toEqual(['b', 'a'])
  })

  test('two at once enter everything once', async () => {
    await using log = await logFolder()
    // More records than are entered in one batch.
    const batchSize = 500
    log.atOnce(() => {
      for (let number = 0; number < 255; number++) log.write({ call: `c${number}`, at: start + number })
    })
    using one = openSearch({ folder: log.folder })
    using other = openSearch({ folder: log.folder })
    await Promise.all([one.catchUp({ batchSize }), other.catchUp({ batchSize })])
    expect([...one.query({})]).toHaveLength(255)
    expect([...other.records({})]).toHaveLength(510)
  })

  test('it is readable by its owner alone', async () => {
    await using log = await logFolder()
    log.write({ call: 'a' })
    expect(await calls(log.folder)).toEqual(['a'])
    expect(statSync(indexFile(log.folder)).mode & 0o777).toBe(0o600)
  })

  test('a read-only folder is searched, too, and nothing is left in it', async () => {
    await using log = await logFolder()
    log.write({ call: 'a' })
    chmodSync(dirname(log.folder), 0o755)
    chmodSync(log.folder, 0o555)
    // No folder is closed to root, so that root reads it as somebody else.
    const root = process.getuid?.() === 0
    if (root) process.seteuid?.(nobody)
    try {
      expect(await calls(log.folder)).toEqual(['a'])
    } finally {
      if (root) process.seteuid?.(0)
      chmodSync(log.folder, 0o700)
    }
    expect(existsSync(indexFile(log.folder))).toBe(false)
  })
})
