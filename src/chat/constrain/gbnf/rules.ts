import { CannotExpress } from '../cannot-express.ts'
import { type Expression, rule } from './expression.ts'
import { hoisted } from './hoist.ts'
import { print } from './print.ts'

/** The named rules of a grammar that is being made. */
export interface Rules {
  /** A rule of this meaning: the same one for the same meaning, under a name like the hint. */
  define(hint: string, meaning: Expression): Expression
  /** The whole grammar, which begins with this rule. */
  grammar(root: Expression): string
}

/** More than a model server would want to read. */
const longest = 512 * 1024

const tooLarge = (): CannotExpress => new CannotExpress('', 'the schema', 'makes too large a grammar')

export function createRules(): Rules {
  const bodies = new Map<string, string>()
  const names = new Map<string, string>()
  /** How many rules there are of each hint. */
  const numbers = new Map<string, number>()
  let length = 0

  const nameFor = (hint: string): string => {
    const plain =
      hint
        .replace(/[^A-Za-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 40) || 'rule'
    let number = numbers.get(plain) ?? 0
    let name: string
    do name = ++number === 1 ? plain : `${plain}-${number}`
    while (name === 'root' || bodies.has(name))
    numbers.set(plain, number)
    return name
  }

  const add = (name: string, body: string): void => {
    length += name.length + body.length
    if (length > longest) throw tooLarge()
    bodies.set(name, body)
  }

  const written = (meaning: Expression): string => print(hoisted(meaning, (group) => define('part', group)))

  const define = (hint: string, meaning: Expression): Expression => {
    if (meaning.kind === 'rule') return meaning
    const body = written(meaning)
    let name = names.get(body)
    if (name === undefined) {
      name = nameFor(hint)
      names.set(body, name)
      add(name, body)
    }
    return rule(name)
  }

  return {
    define,
    grammar(root) {
      const first = written(root)
      if (length + first.length > longest) throw tooLarge()
      const lines = [...bodies].map(([name, body]) => `${name} ::= ${body}`)
      return [`root ::= ${first}`, ...lines, ''].join('\n')
    },
  }
}
