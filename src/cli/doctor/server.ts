import { matches } from '../../core/wildcard.ts'
import type { ProbeResult } from '../../runtime/probe-server.ts'
import { type Diagnosis, diagnose, type Failed, type Tried } from './cause.ts'
import { type Finding, ok, problem, warning } from './finding.ts'
import { httpCauses } from './http-causes.ts'
import { stdioCauses } from './stdio-causes.ts'
import { count, took } from './words.ts'

/** The last words of a server; before them is mostly what it says every time. */
const maxDetails = 8

/** What trying a server has shown, in one sentence, with its usual causes recognised. */
export function serverFinding(tried: Tried): Finding {
  const { examination } = tried
  const { failure, stderr } = examination
  if (failure) {
    const { message, remedy } = cause({ ...tried, failure })
    const details = stderr.filter(isTelling).slice(-maxDetails)
    return problem(message, remedy, details.length > 0 ? { details } : {})
  }
  const summary = summaryOf(examination)
  return oddity(tried, summary) ?? ok(summary)
}

/** Where in a program something happened is for whoever wrote it. */
const isTelling = (line: string): boolean => !/^at .*[:)]\d*/.test(line)

function cause(failed: Failed): Diagnosis {
  const { config } = failed
  return config.transport === 'stdio'
    ? diagnose(stdioCauses, { ...failed, config })
    : diagnose(httpCauses, { ...failed, config })
}

/** `13 tools; 2025-11-25 (legacy) over stdio; start 12 ms, handshake 310 ms, lists 20 ms`. */
function summaryOf({ tools = [], era, protocolVersion, transport, ...times }: ProbeResult): string {
  const { startMs, handshakeMs = 0, listMs = 0 } = times
  const steps = [
    ...(startMs === undefined ? [] : [`start ${took(startMs)}`]),
    `handshake ${took(handshakeMs)}`,
    `lists ${took(listMs)}`,
  ]
  return `${count(tools.length, 'tool')}; ${protocolVersion} (${era}) over ${transport}; ${steps.join(', ')}`
}

/** What works, and is still worth a look. */
function oddity({ name, config, examination }: Tried, summary: string): Finding | undefined {
  const { missing = [], tools = [], hintedReads = [], others = 0, transport, stdout, remarks } = examination
  const setting = `mcpServers.${name}`
  const isRead = (tool: string) =>
    config.readTools.some((pattern) => matches(pattern, tool)) ||
    (config.trustAnnotations && hintedReads.includes(tool))
  if (missing.includes('tools/list')) {
    return problem(`${summary}; it could not give its list of tools`, 'look into its log', { details: remarks })
  }
  if (transport === 'sse' && config.transport === 'http') {
    return warning(
      `${summary}; it speaks only the older HTTP+SSE, which each start finds out anew`,
      `${setting}.transport: sse`,
    )
  }
  if (stdout.length > 0) {
    const said = `${summary}; it also writes to its standard output what is no message ("${stdout[0]}")`
    return warning(said, 'let it log to stderr: other clients may give it up for that')
  }
  if (remarks.length > 0)
    return warning(`${summary}; ${remarks[0]}`, 'tell whoever makes it', { details: remarks.slice(1) })
  if (config.readOnly && tools.length > 0 && !tools.some(isRead)) {
    const remedy = hintedReads.length > 0 ? `${setting}.trustAnnotations: true` : `${setting}.readTools: [${tools[0]}]`
    return warning(
      `${summary}; it is read-only and none of its tools is known to be a read (readTools, trustAnnotations), so none can be used`,
      remedy,
    )
  }
  if (tools.length + others === 0) return warning(`${summary}; it offers nothing at all`, `${setting}.disabled: true`)
  return undefined
}
