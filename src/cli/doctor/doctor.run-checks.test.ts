import { expect, test } from 'vitest'
import type { ProgressLine } from '../kit.ts'
import { runChecks } from './doctor.ts'
import { type DoctorCheck, type DoctorChecks, ok } from './finding.ts'

const silent: ProgressLine = { show() {}, [Symbol.dispose]() {} }
const around = (more: object = {}) => ({
  progress: silent,
  signal: new AbortController().signal,
  command: 'toolway',
  ...more,
})

const named = (name: string, run: DoctorCheck = async () => ok(name)): DoctorChecks => ({ [name]: run })

test('B11: checks run in parallel, and their results keep the order', async () => {
  const second = Promise.withResolvers<void>()
  const checks: DoctorChecks = {
    async first() {
      await second.promise
      return [ok('one'), ok('two')]
    },
    async second() {
      second.resolve()
      return ok('three')
    },
  }
  const found = await runChecks(checks, around())
  expect(found.map(({ name, message }) => `${name} ${message}`)).toEqual(['first one', 'first two', 'second three'])
  for (const { ms } of found) expect(ms).toBeGreaterThanOrEqual(0)
})

test('B11: at most eight checks run at once', async () => {
  let running = 0
  let most = 0
  const check: DoctorCheck = async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return ok('x')
  }
  const checks = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`x${index}`, check]))
  expect(await runChecks(checks, around())).toHaveLength(30)
  expect(most).toBe(8)
})

test('B11: a check that fails is a problem, and the others continue', async () => {
  const found = await runChecks({ bad: () => Promise.reject(new Error('no such luck')), ...named('good') }, around())
  expect(found).toMatchObject([
    {
      name: 'bad',
      status: 'problem',
      message: 'check failed: no such luck',
      remedy: 'toolway doctor --log debug',
    },
    { name: 'good', status: 'ok' },
  ])
})

test('B11: a check that may not read its files says which, and how to get them back', async () => {
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES', path: '/state/audit' })
  expect(await runChecks({ clock: () => Promise.reject(denied) }, around())).toMatchObject([
    {
      name: 'clock',
      message: 'not checked: no permission to read /state/audit',
      remedy: expect.stringContaining('chown'),
    },
  ])
})

test('B11: progress names the running checks', async () => {
  const shown: string[] = []
  const progress: ProgressLine = { ...silent, show: (text) => shown.push(text) }
  await runChecks({ ...named('one'), ...named('two') }, around({ progress }))
  expect(shown.slice(0, 2)).toEqual(['Checking one …', 'Checking one, two …'])
})

test('B11: an interrupt stops it after the running checks have ended', async () => {
  const interrupt = new AbortController()
  let ended = false
  const checks: DoctorChecks = {
    async slow() {
      await new Promise((resolve) => setImmediate(resolve))
      ended = true
      return ok('late')
    },
    async quick(signal) {
      interrupt.abort(new Error('interrupted'))
      signal.throwIfAborted()
      return ok('never')
    },
  }
  await expect(runChecks(checks, around({ signal: interrupt.signal }))).rejects.toThrow('interrupted')
  expect(ended).toBe(true)
})
