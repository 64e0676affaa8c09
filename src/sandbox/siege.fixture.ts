import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Attack } from '../../tests/abuse/sandbox/attack.ts'
import { floods, loops, memoryBombs } from '../../tests/abuse/sandbox/javascript-bombs.ts'
import { javascriptEscapes } from '../../tests/abuse/sandbox/javascript-escapes.ts'
import { tampering, transpilerBombs } from '../../tests/abuse/sandbox/javascript-tampering.ts'
import * as python from '../../tests/abuse/sandbox/python.ts'
import { missing, provide } from '../../tests/fixtures/debian.ts'
import { descendants, zombiesOf } from '../../tests/fixtures/processes.ts'
import { type Responsiveness, watchResponsiveness } from '../../tests/fixtures/responsiveness.ts'
import type { ExecutionOutcome, Language, Tier } from '../core/executor.ts'
import { bundledChild } from './bundled-child.fixture.ts'
import { openTestExecutor, type TestExecutor } from './executor.fixture.ts'

/** Hostile programs by kind. */
export type Attacks = Readonly<Record<string, readonly Attack[]>>

export const javascriptAttacks: Attacks = {
  'ways out': javascriptEscapes,
  'memory bombs': memoryBombs,
  loops,
  floods,
  tampering,
  'transpiler bombs': transpilerBombs,
}

export const pythonAttacks: Attacks = {
  'ways out': python.escapes,
  signals: python.signals,
  bombs: python.bombs,
  floods: python.floods,
  tampering: python.tampering,
}

/** So many of each kind, from all over the list. */
export const some = (count: number, attacks: Attacks): Attacks =>
  Object.fromEntries(
    Object.entries(attacks).map(([kind, list]) => [
      kind,
      list.filter(
        (_, index) => Math.floor((index * count) / list.length) !== Math.floor(((index - 1) * count) / list.length),
      ),
    ]),
  )

/** Low limits are reached quickly. Starting a program on a busy machine alone can take 250 ms of CPU time. */
const limits = { cpuMs: 500 }
const memory = '16MiB'

provide('bwrap', 'bubblewrap')
const withoutBwrap = missing('bwrap')

/** Runs attacks a few at a time, and then looks whether anything is left of them or the host has suffered. */
export function siege(tier: Tier, language: Language, attacks: Attacks): void {
  describe.skipIf(tier === 'bwrap' && withoutBwrap)(`${language} in tier ${tier}`, () => {
    const before = new Set(descendants(process.pid))
    let fixture: TestExecutor
    let child: Disposable
    let watch: { stop(): Responsiveness }

    beforeAll(async () => {
      const bundle = bundledChild()
      child = bundle
      const languages = language === 'python' ? ['python'] : ['javascript', 'typescript']
      const given = { minIsolation: 'worker', memory, languages }
      fixture = openTestExecutor(given, { limits, tiers: [tier], child: bundle.url })
      await fixture.executor.probe()
      watch = watchResponsiveness()
    }, 60_000)

    for (const [kind, list] of Object.entries(attacks)) {
      describe.concurrent(kind, () => {
        const cases = list.map((attack) => [attack.title, attack] as const)
        test.each(cases)('S7: %s', { timeout: 120_000 }, async (_, attack) => {
          const { code, timeoutMs = 20_000 } = attack
          const outcome = await fixture.run(code, { language: attack.language ?? language, timeoutMs })
          expectHeld(attack, outcome, tier)
        })
      })
    }

    test('S7: the host stayed responsive, and nothing is left', { timeout: 60_000 }, async () => {
      const { busyMs, delayMs, calm } = watch.stop()
      expect(busyMs, `${delayMs} ms on the wall clock`).toBeLessThan(300)
      // On a busy machine everything is delayed.
      if (calm) expect(delayMs).toBeLessThan(100)
      await fixture[Symbol.asyncDispose]()
      expect(descendants(process.pid).filter((pid) => !before.has(pid))).toEqual([])
      await pause(0)
      expect(zombiesOf(process.pid)).toEqual([])
    })

    afterAll(async () => {
      await fixture[Symbol.asyncDispose]()
      child[Symbol.dispose]()
    })
  })
}

function expectHeld(attack: Attack, outcome: ExecutionOutcome, tier: Tier): void {
  const { status = ['ok'], value, error, logs } = attack
  expect(status, JSON.stringify(outcome.error)).toContain(outcome.status)
  expect(outcome.isolation).toBe(outcome.status === 'refused' ? undefined : tier)
  if (value !== undefined) expect(JSON.parse(outcome.value ?? 'null')).toEqual(value)
  if (error) expect(`${outcome.error?.name}: ${outcome.error?.message}`).toMatch(error)
  if (logs !== undefined) expect(Buffer.byteLength(outcome.logs)).toBeLessThanOrEqual(logs)
  expect(Buffer.byteLength(outcome.value ?? '')).toBeLessThanOrEqual(262_144)
}
