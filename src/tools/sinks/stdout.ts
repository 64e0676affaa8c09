import { withoutHidden } from '../hidden-characters.ts'
import type { Sink } from './sink.ts'

/** Prints. What could speak to a terminal is taken out: an agent's words are for people. */
export const stdoutSink = (name: string, print: (text: string) => Promise<void> | void): Omit<Sink, 'description'> => ({
  name,
  async write({ id, content }) {
    const text = withoutHidden(content)
    await print(text.endsWith('\n') ? text : `${text}\n`)
    return { uri: `sink://${name}/${id}` }
  },
})
