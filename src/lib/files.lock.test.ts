import { spawnSync } from 'node:child_process'
import { mkdir, mkdtempDisposable, readdir, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockFile, removeLeftovers, temporaryBeside } from './files.ts'

const place = async () => {
  const folder = await mkdtempDisposable(join(tmpdir(), 'toolway-lock-'))
  return { ...folder, lock: join(folder.path, 'lock'), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('B6: one at a time holds a lock, and nothing is left of it', async () => {
  await using at = await place()
  let holders = 0
  let most = 0
  const hold = async () => {
    await using _lock = await lockFile(at.lock)
    most = Math.max(most, ++holders)
    await new Promise((resolve) => setImmediate(resolve))
    holders--
  }
  await Promise.all(Array.from({ length: 10 }, hold))
  expect(most).toBe(1)
  expect(await readdir(at.path)).toEqual([])
})

test('B6: the lock of a dead process is replaced', async () => {
  await using at = await place()
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  await writeFile(at.lock, `${pid} ${hostname()} abc\n`)
  await using _lock = await lockFile(at.lock)
  expect(await readdir(at.path)).toEqual(['lock'])
})

test('B6: the lock of a process that may be alive is not removed', async () => {
  await using at = await place()
  await writeFile(at.lock, `1 some-other-machine abc\n`)
  await expect(lockFile(at.lock, 50)).rejects.toThrow(/remove the file/)
  await writeFile(at.lock, `${process.pid} ${hostname()} abc\n`)
  await expect(lockFile(at.lock, 50)).rejects.toThrow(/is locked by/)
})

test('B6: a lock left by an earlier process with the same pid is acquired', async () => {
  await using at = await place()
  await writeFile(at.lock, `${process.pid} ${hostname()} abc\n`)
  await utimes(at.lock, 0, 0)
  await using _lock = await lockFile(at.lock, 50)
  // This process's own lock stays, however old it gets.
  await utimes(at.lock, 0, 0)
  await expect(lockFile(at.lock, 50)).rejects.toThrow(/is locked by/)
})

test('B6: locks and temporary files of a process that was killed are removed, and no others', async () => {
  await using at = await place()
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const inner = join(at.path, 'pins')
  await mkdir(inner)
  const mine = temporaryBeside(join(inner, 'a.json'))
  const foreign = mine.replace(/[0-9a-f]{8}-(?=\d+-)/, '00000000-')
  const kept = [join(at.path, 'a.json'), join(inner, 'note.tmp'), mine, foreign, join(inner, '.live.lock')]
  for (const path of kept) await writeFile(path, `${process.ppid} ${hostname()} 0123456789ab\n`)
  // Files of others, however old.
  const others = [join(at.path, 'yarn.lock'), join(inner, 'Cargo.lock')]
  for (const path of others) {
    await writeFile(path, `${pid} packages\n`)
    await utimes(path, 0, 0)
  }
  const gone = [mine.replace(`-${process.pid}-`, `-${pid}-`), join(inner, '.a.json.lock'), join(at.path, 'b.lock')]
  for (const path of gone) await writeFile(path, `${pid} ${hostname()} 0123456789ab\n`)
  await removeLeftovers(at.path)
  const left = (await readdir(at.path, { recursive: true })).map((name) => join(at.path, name))
  expect(left.sort()).toEqual([...kept, ...others, inner].sort())
  await removeLeftovers(join(at.path, 'missing'))
})
