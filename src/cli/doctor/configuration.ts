import type { LoadedConfig } from '../../config/load.ts'
import type { ConfigProblem } from '../../config/problems.ts'
import { policyDoubts } from '../../policy/doubts.ts'
import { short } from '../home.ts'
import { near, type Shell, spelling } from '../shell.ts'
import { type Check, type Finding, ok, problem, warning } from './finding.ts'
import { type Situation, unsetVariable } from './situation.ts'
import { count, quoted } from './words.ts'

/** Nobody mends more than this at a time. */
const maxProblems = 20

/** Where the configuration was found, whether it is valid, and what is odd about it. */
export const configurationCheck = (situation: Situation, shell: Shell): Check => ({
  name: 'configuration',
  run: async () =>
    situation.problems.length > 0
      ? brokenFindings(situation.problems, shell)
      : soundFindings(situation.loaded as LoadedConfig, shell),
})

function brokenFindings(problems: readonly ConfigProblem[], shell: Shell): Finding[] {
  const told = problems.slice(0, maxProblems).map((one) => brokenFinding(one, shell))
  const rest = problems.length - told.length
  const validate = `${spelling(shell.env)} validate`
  return rest > 0 ? [...told, problem(`${count(rest, 'problem')} more`, validate)] : told
}

function brokenFinding(found: ConfigProblem, shell: Shell): Finding {
  const { file, line, column, key, message } = found
  const place = [short(file, shell), line, column].filter((part) => part !== undefined).join(':')
  const variable = unsetVariable(found)
  const mend = line === undefined ? `ls -l ${quoted(file)}` : `mend ${place}, then: ${spelling(shell.env)} validate`
  const remedy = variable === undefined ? mend : `export ${variable}=…`
  return problem([place, key, message].filter((part) => part !== '').join(': '), remedy)
}

function soundFindings({ config, files, warnings }: LoadedConfig, shell: Shell): Finding[] {
  const command = spelling(shell.env)
  const read = files.map(({ path }) => short(path, shell)).join(', ')
  const servers = count(Object.keys(config.mcpServers).length, 'server')
  const agents = count(Object.keys(config.agents).length, 'agent')
  const found =
    files.length === 0
      ? ok('none was found, so defaults apply', { remedy: `${command} init` })
      : ok(`${read} is valid: ${servers}, ${agents}`)
  const doubts = [...warnings, ...policyDoubts(config)].map((text) => warning(near(text, shell.cwd)))
  return [found, ...doubts]
}
