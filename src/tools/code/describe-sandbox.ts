import type { Language } from '../../core/executor.ts'
import { codeLimits, maxAnswer } from './limits.ts'

const spelt: Readonly<Record<Language, string>> = {
  javascript: 'JavaScript',
  typescript: 'TypeScript',
  python: 'Python',
}

const scopes = {
  javascript:
    'In scope: await tools.server.tool({…}) calls any of your tools and gives its structured content or text ' +
    '(several at once: Promise.all), await search("task"), await describe("server.tool"); a failed call throws ' +
    'ToolError {code, message}.',
  python:
    'call_tool("server.tool", {…}), call_tools([("server.tool", {…}), …]), search(task), describe(name), ToolError.',
}

export interface SandboxGrants {
  readonly languages: readonly Language[]
  readonly timeout: number
  readonly allowNetwork: readonly string[]
  readonly allowPaths: readonly string[]
}

/** What a model has to know before it writes a program, in few words: they are in every context. */
export function describeSandbox(grants: SandboxGrants): string {
  const { languages } = grants
  const python = languages.includes('python')
  const javascript = languages.some((language) => language !== 'python')
  return [
    `Runs a program (${languages.map((language) => spelt[language]).join(', ')}) in a sandbox${withheld(grants)}.`,
    'Use it to combine, filter or count the results of many tool calls: only the last expression, or what is returned,',
    `and what is printed reach you (${maxAnswer / 1000},000 characters).`,
    ...(javascript ? [scopes.javascript] : []),
    ...(python ? [`${javascript ? 'In Python: ' : 'In scope: '}${scopes.python}`] : []),
    ...granted(grants, javascript),
    `At most ${grants.timeout / 1000} s and ${codeLimits.calls} calls.`,
  ].join(' ')
}

function withheld({ allowNetwork, allowPaths }: SandboxGrants): string {
  const none = [...(allowNetwork.length === 0 ? ['network'] : []), ...(allowPaths.length === 0 ? ['files'] : [])]
  return none.length === 0 ? '' : ` without ${none.join(' and ')}`
}

function granted({ allowNetwork, allowPaths }: SandboxGrants, javascript: boolean): readonly string[] {
  return [
    ...(javascript && allowNetwork.length > 0 ? [`In JavaScript fetch(url) reaches ${some(allowNetwork)}.`] : []),
    ...(allowPaths.length > 0
      ? [`Files under ${some(allowPaths)} can be read (JavaScript: await readText(path)).`]
      : []),
  ]
}

const some = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')
