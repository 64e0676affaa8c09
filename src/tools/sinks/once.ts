import { createHash } from 'node:crypto'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'

/** Who writes again under an id of its own, because it never heard how it went, gets the first answer. */
export interface Once {
  run(owner: string, id: string, content: string, signal: AbortSignal, write: () => Promise<Result>): Promise<Result>
}

interface Known {
  readonly digest: string
  readonly answer: Promise<Result>
}

/** Remembers the latest writes that came with an id. What failed is forgotten and may be tried again. */
export function createOnce(most = 1_000): Once {
  const known = new Map<string, Known>()
  return {
    run(owner, id, content, signal, write) {
      const key = `${owner}\n${id}`
      const digest = createHash('sha256').update(content).digest('base64')
      const before = known.get(key)
      if (before && before.digest !== digest) {
        throw new ToolwayError(
          'INVALID_ARGUMENTS',
          `Something else was written under the id ${id} before; give this another metadata.id.`,
        )
      }
      if (before) return waitFor(before.answer, signal)
      const answer = write()
      known.set(key, { digest, answer })
      if (known.size > most) known.delete(known.keys().next().value as string)
      const forget = () => {
        if (known.get(key)?.answer === answer) known.delete(key)
      }
      answer.then(({ isError }) => isError && forget(), forget)
      return answer
    },
  }
}
