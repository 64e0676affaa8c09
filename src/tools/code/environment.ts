import { createHash } from 'node:crypto'
import type { Caller } from '../../core/call.ts'
import type { Language } from '../../core/executor.ts'

/**
 * The key of a named environment. It belongs to one principal acting as one agent, whatever others call theirs; who
 * has shown no credential is nobody else only within a session. JavaScript and TypeScript are one language at run time.
 */
export function environmentKey(caller: Caller, name: string, language: Language): string {
  const { principal, agent, authenticated, session } = caller
  const spoken = language === 'typescript' ? 'javascript' : language
  const owner = [principal, agent, authenticated ? null : session, name, spoken]
  return createHash('sha256').update(JSON.stringify(owner)).digest('hex')
}
