import { tokens } from './tokens.ts'

/** Where one step of a task ends and the next begins: sentences, lines, and the words that say so. */
const border = /(?<=[.?!;。？！；])\s+|\n+|,?\s+(?:(?:and\s+)?then|(?:and\s+)?after that|and (?:also|finally))[\s,]+/i

/** Nobody reads a task of more words; what comes after is no question any more. */
const longest = 4_000
const maxSteps = 12

/** The words of a task, step by step, each word once in a step. A step without words is none. */
export function stepsOf(task: string): readonly (readonly string[])[] {
  const steps = task
    .slice(0, longest)
    .split(border)
    .map((step) => [...new Set(tokens(step))])
    .filter((words) => words.length > 0)
  if (steps.length <= maxSteps) return steps
  return [...steps.slice(0, maxSteps - 1), [...new Set(steps.slice(maxSteps - 1).flat())]]
}
