import { exitCodeOf } from '../../src/cli/kit.ts'
import { type ErrorCode, errorKinds, ToolwayError } from '../../src/core/errors.ts'
import { endOfError } from '../../src/core/outcome.ts'
import type { Example, NoExample } from './example.ts'
import type { PageText } from './page-text.ts'
import { points, wrap } from './wrap.ts'

/** The page of one code, in Markdown. */
export function pageOf(code: ErrorCode, text: PageText, example: Example | NoExample): string {
  const { happened, causes, model, operator, keys, commands, related } = text
  const sections = [
    ['Causes', points(causes)],
    ['What a model should do', points(model)],
    ['What an operator can do', points(operator)],
    ['Example', exampleOf(example)],
    ['See also', points(seeAlso(code, keys, commands, related))],
  ]
  return (
    [
      '<!-- Generated from tooling/error-pages by `npm run generate`. -->',
      `# ${code}`,
      wrap(`${happened}.`),
      factsOf(code),
      ...sections.map(([title, body]) => `## ${title}\n\n${body}`),
    ].join('\n\n') + '\n'
  )
}

/** Facts that depend only on the code. */
function factsOf(code: ErrorCode): string {
  const error = new ToolwayError(code, '')
  const { rpc, http, retryable, serverFault } = error.kind
  const malformed = 'malformed' in errorKinds[code]
  const rows = [
    ['JSON-RPC number', `${rpc}${malformed ? ', for tool calls too' : ', unless the failure is a tool result'}`],
    ['HTTP status', `${http}, if the HTTP request itself is refused`],
    ['may succeed if repeated unchanged', yesOrNo(retryable)],
    ["counts as a failure for the server's breaker", yesOrNo(serverFault)],
    [
      'decision in the audit log',
      isRecorded(code) ? `\`${endOfError(error).ending.decision}\`` : 'none, because the log cannot be written',
    ],
    ['exit code of the command line', String(exitCodeOf(error))],
  ]
  return ['| | |', '| --- | --- |', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n')
}

const yesOrNo = (is: boolean): string => (is ? 'yes' : 'no')

function exampleOf(example: Example | NoExample): string {
  if ('none' in example) return wrap(example.none)
  const { config, call, circumstances, answer } = example
  const under = config === undefined ? [] : ['With this configuration:', fenced('yaml', config)]
  const asked = `A call to \`${call}\`${circumstances ? `, ${circumstances},` : ''}`
  return [...under, wrap(`${asked} returns:`), fenced('json', JSON.stringify(answer, null, 2))].join('\n\n')
}

const fenced = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``

/** Codes that follow from an idea, and where it is explained. */
const conceptOf: Partial<Record<ErrorCode, string>> = {
  CIRCUIT_OPEN: 'concepts.md#circuit-breaker',
  OUTCOME_UNKNOWN: 'concepts.md#outcome_unknown',
  QUARANTINED: 'concepts.md#pins-and-quarantine',
  WRITE_NOT_ALLOWED: 'concepts.md#reads-and-writes',
}

/** The failure of the log itself is not in the log. */
const isRecorded = (code: ErrorCode): boolean => code !== 'AUDIT_UNAVAILABLE'

function seeAlso(
  code: ErrorCode,
  keys: readonly string[],
  commands: readonly string[],
  related: readonly ErrorCode[],
): string[] {
  const quoted = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ')
  const concept = conceptOf[code]
  const recorded = isRecorded(code) ? [`toolway audit query --code ${code} --since 7d`] : []
  return [
    ...(concept === undefined ? [] : [`The idea behind it: [Concepts](../${concept})`]),
    ...(keys.length === 0 ? [] : [`[Configuration](../configuration.md): ${quoted(keys)}`]),
    `Commands: ${quoted([...commands, ...recorded])}`,
    `Related: ${related.map((other) => `[${other}](${other}.md)`).join(', ')}`,
    '[All codes](../errors.md)',
  ]
}
