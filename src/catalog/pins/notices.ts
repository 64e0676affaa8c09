import type { Log } from '../../core/log.ts'
import { visible } from '../scan/escape-invisible.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { summarizeChanges } from './definition-diff.ts'
import type { DefinitionSnapshot, Pin } from './pin-record.ts'
import { labelOf, latestApproval, type PinsMode } from './pin-state.ts'

/** A server whose definitions change constantly must not fill the log. */
const maxChanges = 5
const maxRemembered = 50_000

export type Notices = ReturnType<typeof createNotices>

/** Logs what happens to definitions, each event once per run. */
export function createNotices(log: Log, mode: PinsMode) {
  const said = new Set<string>()
  const counts = new Map<string, number>()
  const once = (...key: readonly string[]): boolean => {
    const text = key.join('\n')
    if (said.has(text)) return false
    if (said.size >= maxRemembered) said.clear()
    said.add(text)
    return true
  }
  const effect = mode === 'quarantine' ? 'it is quarantined until somebody approves it' : 'it stays usable'

  return {
    changed(server: string, pin: Pin, sight: DefinitionSnapshot): void {
      const label = labelOf(server, pin.kind, pin.name)
      if (!once('changed', label, sight.hash)) return
      const count = (counts.get(label) ?? 0) + 1
      counts.set(label, count)
      if (count > maxChanges) return
      const facts = {
        server,
        definition: visible(label),
        diff: summarizeChanges(latestApproval(pin)?.definition, sight.definition),
      }
      const more = count === maxChanges ? '; it keeps changing, so no more is said of it in this run' : ''
      log.warn(
        facts,
        `a definition is not the one that was approved: ${effect}; \`toolway pins show ${visible(label)}\` shows more${more}`,
      )
    },
    unapproved(server: string): void {
      if (!once('unapproved', server)) return
      log.warn(
        { server },
        `definitions of a server whose pins were lost wait for \`toolway pins approve ${visible(server)}.*\``,
      )
    },
    isNew(server: string, label: string): void {
      log.info({ server, definition: visible(label) }, 'a new definition is trusted at first sight')
    },
    found(server: string, label: string, hash: string, findings: readonly ScanFinding[]): void {
      if (findings.length === 0 || !once('found', label, hash)) return
      const shown = findings.slice(0, 5).map(({ kind, where, excerpt }) => `${kind} in ${visible(where)}: ${excerpt}`)
      log.warn(
        { server, definition: visible(label), findings: shown },
        'a definition holds what people would not see or a model might obey; look at it before you trust it',
      )
    },
    full(server: string): void {
      if (!once('full', server)) return
      const message = `a server has offered more names than can be pinned; ${mode === 'quarantine' ? 'further ones are quarantined' : 'further ones are not watched'}`
      log.warn({ server }, message)
    },
    moved(server: string, from: string, to: string): void {
      log.warn(
        { server, from: visible(from), to: visible(to) },
        'a server comes from elsewhere now; its pins still hold',
      )
    },
  }
}
