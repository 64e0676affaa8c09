import { createHash } from 'node:crypto'
import type { Caller } from '../../core/call.ts'
import type { Language } from '../../core/executor.ts'

/** The name of the tool that runs programs. */
export const codeTool = 'execute_code'

/**
 * The key of a named environment. It belongs to one principal acting as one agent, whatever others call theirs; who
 * has shown no credential is nobody else only within a session. JavaScript and TypeScript are one language at run time.
 */
export function environmentKey(caller: Caller, name: string, language: Language): string {
  const { authenticated, session } = caller
  const spoken = language === 'typescript' ? 'javascript' : language
  const key = [ownerOf(caller), authenticated ? null : session, name, spoken]
  return createHash('sha256').update(JSON.stringify(key)).digest('hex')
}

/** Whose programs share what there is for one. Who has shown no credential could be anybody in the next session. */
export const ownerOf = ({ principal, agent }: Caller): string => JSON.stringify([principal, agent])

/** What a program is written in that does not say so. */
export const usualLanguage = (languages: readonly Language[]): Language =>
  languages.includes('javascript') ? 'javascript' : (languages[0] as Language)

/** The key of the environment that the arguments of a call name, before anybody has checked them. */
export function environmentAsked(
  caller: Caller,
  { environment, language }: Readonly<Record<string, unknown>>,
  languages: readonly Language[],
): string | undefined {
  if (typeof environment !== 'string') return undefined
  const spoken = languages.find((one) => one === language) ?? usualLanguage(languages)
  return environmentKey(caller, environment, spoken)
}
