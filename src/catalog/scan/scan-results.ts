import type { Call, Interceptor } from '../../core/call.ts'
import type { Log } from '../../core/log.ts'
import type { Result, ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { members } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { withoutHidden } from '../../lib/characters.ts'
import { unprefixedSources } from '../names.ts'
import { findingText, type ScanFinding, visible } from './finding.ts'
import { scanDefinition } from './scan.ts'

export const findingsKey = 'dev.toolway/findings'
/** Max findings added to a result. More would waste the model's context. */
const maxMarked = 8
/** Names of members that hold base64 data. */
const binary: ReadonlySet<string> = new Set(['data', 'blob'])

/**
 * Scans results from servers (tool results, resource contents, prompt messages) for hidden characters and instructions
 * to the model. Findings are logged, counted, recorded and added to `_meta`; `strip` also removes hidden characters.
 */
export function scanResults({ mode, log }: { readonly mode: 'warn' | 'strip'; readonly log: Log }): Interceptor {
  return async (call, next) => {
    const result = await next(call)
    if (unprefixedSources.includes(call.entry.server)) return result
    const findings = scanDefinition(result.body.value, binary)
    if (findings.length === 0) return result
    const kinds = [...new Set(findings.map(({ kind }) => kind))]
    tell(call, findings, kinds)
    const text = result.body.bytes.toString('utf8')
    const body = Json.raw<ResultBody>(markResult(mode === 'strip' ? stripHidden(text) : text, findings))
    const { plain: _, ...rest } = result
    return { ...rest, body, findings: kinds } satisfies Result
  }

  function tell({ id, entry, trail }: Call, findings: readonly ScanFinding[], kinds: readonly string[]): void {
    if (trail) trail.findings = kinds
    const shown = findings.slice(0, 5).map(findingText)
    log.warn(
      { server: entry.server, tool: entry.name, call: id, findings: shown },
      'result contains hidden text or instructions to the model',
    )
  }
}

const jsonString = /"(?:[^"\\]|\\.)*"/gs
const suspicious = /[^\x20-\x7e]|\\[urbf]/

/** Removes hidden characters from the strings in JSON text. Edits the text itself, because numbers must not change. */
const stripHidden = (json: string): string =>
  json.replace(jsonString, (token) => {
    if (!suspicious.test(token)) return token
    const text = jsonValue(token) as string
    const clean = withoutHidden(text, 'kept')
    return clean === text ? token : JSON.stringify(clean)
  })

/** Adds the findings to a result's `_meta`. Leaves all other bytes unchanged. */
function markResult(json: string, findings: readonly ScanFinding[]): Buffer {
  const bytes = Buffer.from(json)
  const shown = findings.slice(0, maxMarked).map((finding) => ({ ...finding, where: visible(finding.where) }))
  const mark = JSON.stringify(shown)
  const meta = members(bytes)?.get('_meta')
  if (!meta) {
    const start = json.indexOf('{') + 1
    const comma = /^\s*\}/.test(json.slice(start)) ? '' : ','
    return Buffer.from(`${json.slice(0, start)}"_meta":{"${findingsKey}":${mark}}${comma}${json.slice(start)}`)
  }
  // Drop the server's own value for this key: a server must not write findings itself.
  const others = [...(members(meta) ?? [])]
    .filter(([key]) => key !== findingsKey)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
  const merged = `{${[...others, `"${findingsKey}":${mark}`].join(',')}}`
  const at = meta.byteOffset - bytes.byteOffset
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(merged), bytes.subarray(at + meta.length)])
}
