import { chmod, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { beginOf, endOf, openLog } from '../../audit/audit.fixture.ts'
import { listSegments } from '../../audit/log-files.ts'
import { systemClock } from '../../core/clock.ts'
import { keptAuditKey } from '../../stores/secret-file.ts'
import { clockFinding, readLaneEnds } from './audit.ts'
import { checkup, configured } from './checkup.fixture.ts'
import type { CheckFinding } from './finding.ts'
import { storeFolderFindings, storeSpaceFinding } from './stores.ts'

type Place = Awaited<ReturnType<typeof configured>>

const logOf = ({ cwd }: Place) => join(cwd, 'state', 'audit')

/** Writes a few records as a gateway would. */
async function recorded(at: Place, calls = 3): Promise<void> {
  const key = await keptAuditKey(join(at.cwd, 'state'))
  await using log = await openLog(logOf(at), { key, clock: systemClock })
  for (let call = 1; call <= calls; call++) {
    log.begin(beginOf({ call: `c${call}` }))
    await log.end(endOf({ call: `c${call}` }))
  }
}

test('B11: a writable folder is not changed', async () => {
  await using at = await configured()
  expect((await checkup(at)).of('stores.folder')).toMatchObject([{ status: 'ok', message: '~/state is writable' }])
  expect(await readdir(at.cwd)).toEqual(['toolway.json'])
  await mkdir(join(at.cwd, 'state'), { mode: 0o700 })
  expect((await checkup(at)).of('stores.folder')).toMatchObject([{ status: 'ok' }])
  expect(await readdir(join(at.cwd, 'state'))).toEqual([])
})

test('B11: a file instead of the folder is a problem', async () => {
  await using at = await configured({ stores: { path: './file/state' } })
  const file = join(at.cwd, 'file')
  await writeFile(file, '')
  const { of } = await checkup(at)
  expect(of('stores.folder')[0]).toMatchObject({
    status: 'problem',
    remedy: 'stores.path: /a/folder/that/can/be/written',
  })
})

test('B11: for a missing folder, the remedy creates it and leaves its parents unchanged', async () => {
  await using at = await configured()
  const path = join(at.cwd, 'new', 'state')
  const run = (code: string) => denied({ stores: path, audit: join(at.cwd, 'log') }, code)
  expect(await run('EACCES')).toEqual([
    `sudo mkdir -p ${path} && sudo chown "$(id -u)" ${path}`,
    `sudo mkdir -p ${join(at.cwd, 'log')} && sudo chown "$(id -u)" ${join(at.cwd, 'log')}`,
  ])
  expect(await run('EROFS')).toEqual([
    'stores.path: /a/folder/that/can/be/written',
    'audit.path: /a/folder/that/can/be/written',
  ])
  // What helps one folder helps the others.
  expect(await denied({ stores: path, common: join(at.cwd, 'common') }, 'EROFS')).toHaveLength(1)
})

test.skipIf(process.getuid?.() !== 0)(
  "B11: another user's folder gets a new owner only if Toolway alone uses it",
  async () => {
    await using at = await configured()
    const [empty, shared, own] = ['empty', 'shared', 'toolway'].map((name) => join(at.cwd, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [empty, shared, own]) {
      await mkdir(path)
      if (path !== empty) await writeFile(join(path, 'file'), '')
      await chown(path, 65534, 65534)
    }
    const changed = (path: string) => [`sudo chown -R "$(id -u)" ${path} && chmod u+rwx ${path}`]
    expect(await denied({ stores: empty }, 'EACCES')).toEqual(changed(empty))
    expect(await denied({ stores: own }, 'EACCES')).toEqual(changed(own))
    expect(await denied({ stores: shared }, 'EACCES')).toEqual(['stores.path: /a/folder/that/can/be/written'])
  },
)

/** The remedies for folders in which nothing can be created. */
async function denied(
  { stores, common = stores, audit = stores }: { stores: string; common?: string; audit?: string },
  code: string,
) {
  const config = { stores: { path: stores, common }, audit: { path: audit } } as never
  const found = await storeFolderFindings(config, { short: (path) => path }, () =>
    Promise.reject(Object.assign(new Error(code), { code })),
  )
  return (found as CheckFinding[]).map(({ remedy }) => remedy)
}

test('B11: the mode of a folder that is meant for all users is not changed', async () => {
  await using at = await configured()
  await mkdir(join(at.cwd, 'state'))
  await chmod(join(at.cwd, 'state'), 0o1777)
  expect((await checkup(at)).of('stores.folder')).toMatchObject([
    { status: 'problem', remedy: 'stores.path: /a/folder/that/can/be/written' },
  ])
})

test('B11: a folder that others may write to is a problem', async () => {
  await using at = await configured()
  await mkdir(join(at.cwd, 'state'))
  await chmod(join(at.cwd, 'state'), 0o777)
  expect((await checkup(at)).of('stores.folder')).toMatchObject([
    { status: 'problem', message: expect.stringContaining('mode 777'), remedy: expect.stringMatching(/^chmod go-w /) },
  ])
})

test.each([
  [10_000_000_000, false, 'ok'],
  [100_000_000, false, 'warning'],
  [500_000, false, 'problem'],
  [10_000_000_000, true, 'problem'],
])('B11: %d bytes free, no inodes left: %s; status %s', async (bytes, noFiles, status) => {
  const found = await storeSpaceFinding({ audit: { path: '/' } } as never, async () => ({ bytes, noFiles }))
  expect(found).toMatchObject({ status })
})

test('B11: the newest records and the clock are checked', async () => {
  await using at = await configured()
  await recorded(at)
  const { of } = await checkup(at)
  expect(of('audit.chain')).toMatchObject([
    { status: 'ok', message: expect.stringMatching(/newest \d+ records in 1 lane/) },
  ])
  expect(of('clock')).toMatchObject([{ status: 'ok', message: expect.stringContaining('after the last record') }])
  expect(of('audit.lock')).toMatchObject([{ status: 'ok', message: expect.stringContaining('no process') }])
})

test.each<[string, (text: string) => string, RegExp]>([
  ['changed', (text) => text.replace('"c2"', '"c9"'), /hash/],
  ['removed', (text) => text.split('\n').toSpliced(3, 1).join('\n'), /missing/],
  ['cut off', (text) => `${text.split('\n').slice(0, 4).join('\n')}\n`, /ends with record 4, but record \d+ /],
])('B11: a record that was %s is a problem', async (_, change, message) => {
  await using at = await configured()
  await recorded(at)
  const path = join(logOf(at), '1', listSegments(logOf(at), '1').at(-1) as string)
  await writeFile(path, change(await readFile(path, 'utf8')))
  const { code, of } = await checkup(at)
  expect(code).toBe(5)
  expect(of('audit.chain')).toMatchObject([
    { status: 'problem', message: expect.stringMatching(message), remedy: 'toolway audit verify' },
  ])
})

test('B11: a clock behind the last record is a problem', async () => {
  await using at = await configured()
  await recorded(at)
  const state = join(at.cwd, 'state')
  const config = { audit: { path: join(state, 'audit') }, stores: { path: state } } as never
  const clock = { ...systemClock, now: () => Date.now() - 2.5 * 3_600_000 }
  expect(clockFinding(await readLaneEnds(config), { clock })).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('2 hours before the last'),
  })
})
