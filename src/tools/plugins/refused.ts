import { ToolwayError } from '../../core/errors.ts'
import { thrownText } from '../../lib/message-text.ts'

/** Thrown if some plugins cannot be loaded. The whole configuration is then rejected, not applied in part. */
export class PluginsRefused extends ToolwayError {
  /** One message per problem. It names the file and says what is wrong and what to do. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super('INTERNAL', problems.join(' '))
    this.problems = problems
  }
}

export class Untrusted extends Error {}

export function loadProblem(file: string, thrown: unknown): string {
  if (thrown instanceof Untrusted) return thrown.message
  const { code, name, message, stack } = errorOf(thrown)
  const detail = message
    .replace(/\?toolway-plugin=[\w-]+/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)
    .replace(/\.$/, '')
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
    return `${file} uses TypeScript syntax that cannot be removed as types (${detail}); do not use enums, namespaces or parameter properties.`
  }
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') {
    return `${file} has an import that cannot be resolved: ${detail}. Install it next to the plugin, or correct the import.`
  }
  if (name === 'SyntaxError' || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX') {
    const line = /\?toolway-plugin=[\w-]+:(\d+)/.exec(stack)?.[1]
    return `${file} cannot be loaded${line === undefined ? '' : ` (line ${line})`}: ${detail}. Correct the file.`
  }
  return `${file} failed to load: ${detail}. Fix it, or remove it from native.plugins.`
}

function errorOf(thrown: unknown) {
  if (!(thrown instanceof Error)) return { code: '', name: '', message: thrownText(thrown), stack: '' }
  const { code = '' } = thrown as NodeJS.ErrnoException
  return { code, name: thrown.name, message: thrown.message, stack: thrown.stack ?? '' }
}
