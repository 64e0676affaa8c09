import type { Expression } from './expression.ts'

/** llama.cpp refuses a group whose rules, times its repetitions, are more than 2,000; other readers may know less. */
const most = 200

/**
 * The same with the groups that are repeated often made into rules of their own: readers unfold a group as often as it
 * is repeated, with everything in it, and a name counts as one thing only.
 */
export function hoisted(expression: Expression, define: (group: Expression) => Expression): Expression {
  switch (expression.kind) {
    case 'all':
      return { ...expression, parts: expression.parts.map((part) => hoisted(part, define)) }
    case 'any':
      return { ...expression, options: expression.options.map((option) => hoisted(option, define)) }
    case 'times': {
      const inner = hoisted(expression.inner, define)
      const unfolded = isGroup(inner) ? (1 + rulesOf(inner)) * expression.max : 0
      return { ...expression, inner: unfolded > most ? define(inner) : inner }
    }
    default:
      return expression
  }
}

const isGroup = ({ kind }: Expression): boolean => kind === 'all' || kind === 'any' || kind === 'times'

/** How many rules a reader makes of it. */
function rulesOf(expression: Expression): number {
  switch (expression.kind) {
    case 'all':
      return expression.parts.reduce((sum, part) => sum + rulesOf(part), 1)
    case 'any':
      return expression.options.reduce((sum, option) => sum + rulesOf(option), 1)
    case 'times':
      return rulesOf(expression.inner) + expression.max - expression.min
    default:
      return 0
  }
}
