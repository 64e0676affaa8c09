/** `node echo-stdio.ts [TOOLS]`: the same server over standard input and output; lines that come together are answered together. */
import { echoAnswers } from './echo-tools.ts'

const [count = '10'] = process.argv.slice(2)
const answers = echoAnswers('echo', Number(count))
const newline = Buffer.from('\n')

let rest: Buffer = Buffer.alloc(0)
let together: Buffer[] | undefined
process.stdin.on('data', (chunk: Buffer) => {
  const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
  together = []
  let start = 0
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    answers.answer(bytes.subarray(start, end), (answer) => {
      if (answer === undefined) return
      if (together === undefined) process.stdout.write(Buffer.concat([...answer, newline]))
      else together.push(...answer, newline)
    })
    start = end + 1
  }
  rest = Buffer.from(bytes.subarray(start))
  if (together.length > 0) process.stdout.write(Buffer.concat(together))
  together = undefined
})
process.stdin.on('end', () => process.exit(0))
