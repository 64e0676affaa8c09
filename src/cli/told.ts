import { FileProblem } from '../clients/file-problem.ts'
import { UsageError } from './usage.ts'

/** What is wrong with a file is for the user to mend. */
export async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    throw thrown instanceof FileProblem ? new UsageError(thrown.message, thrown.hint) : thrown
  }
}

/** Edits a text; what stands in the way is said of its file. */
export function edited<T>(file: string, edit: () => T): T {
  try {
    return edit()
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown
    throw new UsageError(`${file} was left alone: ${thrown.message.replace(/\.$/, '')}.`, thrown.hint)
  }
}
