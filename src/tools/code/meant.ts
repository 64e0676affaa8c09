import type { Served, View } from '../../core/access.ts'
import type { Wait } from '../../core/waiting.ts'
import { identifiersOf } from './identifiers.ts'
import { namesOf } from './names.ts'
import type { Question } from './question.ts'

/**
 * The tool that a program means; throws as the view does. Identifiers are made of what the caller may use and of
 * nothing else, and whether it may be used is decided when it is called.
 */
export async function meant(view: View, { server, tool }: Question, wait: Wait): Promise<Served> {
  if (server === undefined) return view.resolve('tool', tool, wait)
  const find = () => namesOf(view.list('tool')).find(server, tool)
  const known = find()
  if (known) return known
  try {
    return await view.find('tool', serverNamed(view, server), tool, wait)
  } catch (thrown) {
    // Looking for it may have woken the server, and it may be spelt as an identifier.
    const woken = find()
    if (woken) return woken
    throw thrown
  }
}

/** Servers that have not said yet what they offer can be spelt as identifiers, too. */
function serverNamed(view: View, spelling: string): string {
  const exact = namesOf(view.list('tool')).server(spelling)
  if (exact !== undefined) return exact
  for (const [name, identifier] of identifiersOf(view.servers().map(({ name }) => name))) {
    if (identifier === spelling) return name
  }
  return spelling
}
