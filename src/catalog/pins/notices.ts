import type { Log } from '../../core/log.ts'
import { findingText, visible } from '../scan/escape-invisible.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { isFlag } from '../scan/scan.ts'
import { summarizeChanges } from './definition-diff.ts'
import type { DefinitionSnapshot, Pin } from './pin-record.ts'
import { labelOf, latestApproval, type PinsMode } from './pin-state.ts'

/** Max logged changes per definition, so that a server whose definitions change constantly does not fill the log. */
const maxChanges = 5
const maxRemembered = 50_000

export type Notices = ReturnType<typeof createNotices>

/** Logs changes and findings in definitions, each event once per run. */
export function createNotices(log: Log, mode: PinsMode) {
  const logged = new Set<string>()
  const counts = new Map<string, number>()
  const once = (...key: readonly string[]): boolean => {
    const text = key.join('\n')
    if (logged.has(text)) return false
    if (logged.size >= maxRemembered) logged.clear()
    logged.add(text)
    return true
  }
  const effect = mode === 'quarantine' ? 'it is quarantined until it is approved' : 'it stays usable'

  return {
    changed(server: string, pin: Pin, snapshot: DefinitionSnapshot): void {
      const label = labelOf(server, pin.kind, pin.name)
      if (!once('changed', label, snapshot.hash)) return
      const count = (counts.get(label) ?? 0) + 1
      counts.set(label, count)
      if (count > maxChanges) return
      const facts = {
        server,
        definition: visible(label),
        diff: summarizeChanges(latestApproval(pin)?.definition, snapshot.definition),
      }
      const more = count === maxChanges ? '. Further changes to it are not logged' : ''
      log.warn(
        facts,
        `definition differs from the approved one: ${effect}; run \`toolway pins show ${visible(label)}\` for details${more}`,
      )
    },
    unapproved(server: string): void {
      if (!once('unapproved', server)) return
      log.warn(
        { server },
        `a server's pins were lost; approve its definitions with \`toolway pins approve ${visible(server)}.*\``,
      )
    },
    isNew(server: string, label: string): void {
      if (!once('new', label)) return
      const facts = { server, definition: visible(label) }
      if (mode === 'quarantine') log.warn(facts, `new definition: ${effect}; see \`toolway pins show\``)
      else log.info(facts, 'trusted a new definition on first use')
    },
    found(server: string, label: string, hash: string, findings: readonly ScanFinding[]): void {
      if (!findings.some(isFlag) || !once('found', label, hash)) return
      const shown = findings.slice(0, 5).map(findingText)
      log.warn(
        { server, definition: visible(label), findings: shown },
        'definition contains hidden text or instructions to the model; review it before you trust it',
      )
    },
    full(server: string): void {
      if (!once('full', server)) return
      const message = `a server has offered more names than can be pinned; ${mode === 'quarantine' ? 'the rest are quarantined' : 'the rest are not checked for changes'}`
      log.warn({ server }, message)
    },
    moved(server: string, from: string, to: string): void {
      log.warn({ server, from: visible(from), to: visible(to) }, 'server has a new origin; its pins still apply')
    },
  }
}
