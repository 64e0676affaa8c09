import type { Context } from './context.ts'
import { anyNumber } from './decimals.ts'
import { all, any, type Expression, optional, text } from './expression.ts'
import { maxKeyCharacters } from './limits.ts'
import { rowOf } from './rows.ts'
import { anyString, character } from './strings.ts'

/** Any JSON value that nests no deeper than this. */
export function freeValue(context: Context, depth = context.limits.freeDepth): Expression {
  const { rules, limits } = context
  const sign = rules.define('char', character)
  const scalar = any(
    rules.define('string', anyString(sign, 0, limits.string)),
    rules.define('number', anyNumber),
    text('true'),
    text('false'),
    text('null'),
  ) as Expression
  if (depth === 0) return rules.define('scalar', scalar)
  const inner = freeValue(context, depth - 1)
  const key = rules.define('name', anyString(sign, 1, maxKeyCharacters))
  const pair = rules.define('pair', all(key, text(':'), optional(text(' ')), inner))
  const listed = (expression: Expression, most: number) =>
    rowOf(rules, 'row', { parts: [], extra: { expression, most }, min: 0, max: most }) as Expression
  return rules.define(
    'any',
    any(
      scalar,
      all(text('['), listed(inner, limits.items), text(']')),
      all(text('{'), listed(pair, limits.members), text('}')),
    ) as Expression,
  )
}
