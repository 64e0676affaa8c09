import { sentenceOf } from '../policy/arguments/problems.ts'

type Found = { readonly value: unknown } | { readonly problem: string }

/** Makes a value of what a model wrote, mended where that is possible, and holds it to the schema that was asked for. */
export async function readAnswer(
  text: string,
  schema: Readonly<Record<string, unknown>>,
  restore: (value: unknown) => unknown,
): Promise<Found> {
  // Loaded when it is needed: few gateways have a model that is asked for JSON.
  const { repair } = await import('../chat/repair/repair.ts')
  const found = repair(text, { accepts: () => true })
  if ('unreadable' in found) return { problem: found.unreadable }
  const value = restore(found.value)
  const { compile } = await import('../policy/arguments/compile.ts')
  const made = compile(schema)
  // A schema that cannot be checked is no fault of the answer.
  const problems = 'unfit' in made ? [] : made.check(value)
  return problems.length === 0 ? { value } : { problem: `does not fit: ${sentenceOf(problems)}` }
}
