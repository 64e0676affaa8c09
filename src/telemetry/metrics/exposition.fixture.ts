/** A strict reader of Prometheus' text format 0.0.4: anything that a lenient scraper may accept is an error here. */

export interface ReadSample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

export interface ReadFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: readonly ReadSample[]
}

const metricName = /^[a-z][a-z0-9_]*$/
const labelName = /^[a-z][a-z0-9_]*$/
const number = /^(?:NaN|[+-]Inf|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/
const suffixes = { counter: [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'] } as const

/** Reads a whole page; throws where anything about it is not as it should be. */
export function readPage(text: string): ReadonlyMap<string, ReadFamily> {
  if (!text.endsWith('\n')) throw new Error('the page does not end with a newline')
  const lines = text.slice(0, -1).split('\n')
  const families = new Map<string, ReadFamily>()
  const series = new Set<string>()
  let at = 0
  while (at < lines.length) {
    const [, name = '', help] = /^# HELP (\S+) (.+)$/.exec(lines[at++] as string) ?? fail(`no HELP: ${lines[at - 1]}`)
    const [, typed, type = ''] =
      /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(lines[at++] ?? '') ?? fail(`no TYPE: ${name}`)
    if (typed !== name) fail(`TYPE of ${typed} after HELP of ${name}`)
    if (!metricName.test(name)) fail(`not a name: ${name}`)
    if (families.has(name)) fail(`${name} comes twice`)
    if ((type === 'counter') !== name.endsWith('_total')) fail(`${name} is a ${type}`)
    if (/_(count|sum|bucket|info_total)$/.test(name)) fail(`${name} has an ending that means something else`)
    if (help?.trim() !== help || help === '') fail(`help of ${name} is not tidy`)
    const samples: ReadSample[] = []
    for (; at < lines.length && !(lines[at] as string).startsWith('#'); at++) {
      const line = lines[at] as string
      const sample = readSample(line)
      const known = suffixes[type as keyof typeof suffixes].map((suffix) => name + suffix)
      if (!known.includes(sample.name)) fail(`${sample.name} among those of ${name}`)
      if (type === 'counter' && !(sample.value >= 0)) fail(`a counter below zero: ${line}`)
      const key = JSON.stringify([sample.name, [...sample.labels].sort()])
      if (series.has(key)) fail(`the same series twice: ${line}`)
      series.add(key)
      samples.push(sample)
    }
    const family = { name, type, help: help as string, samples }
    if (type === 'histogram') checkHistogram(family)
    families.set(name, family)
  }
  return families
}

function fail(why: string): never {
  throw new Error(why)
}

function readSample(line: string): ReadSample {
  const [, name = '', rest = ''] = /^([a-z][a-z0-9_]*)(.*)$/s.exec(line) ?? fail(`not a sample: ${line}`)
  const labels = new Map<string, string>()
  let tail = rest
  if (tail.startsWith('{')) {
    tail = tail.slice(1)
    while (!tail.startsWith('}')) {
      const [whole, label = '', value = ''] =
        /^([a-z][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/.exec(tail) ?? fail(`labels: ${line}`)
      if (!labelName.test(label) || label.startsWith('__') || labels.has(label)) fail(`label ${label}: ${line}`)
      labels.set(
        label,
        value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped)),
      )
      tail = tail.slice(whole.length)
      if (tail.startsWith(',')) tail = tail.slice(1)
      else if (!tail.startsWith('}')) fail(`labels: ${line}`)
    }
    tail = tail.slice(1)
    if (labels.size === 0) fail(`empty braces: ${line}`)
  }
  const [, written = ''] = /^ (\S+)$/.exec(tail) ?? fail(`value: ${line}`)
  if (!number.test(written)) fail(`not a number: ${line}`)
  return { name, labels, value: Number(written.replace('Inf', 'Infinity')) }
}

/** Buckets in order, each holding the ones before it, the last one all of them. */
function checkHistogram({ name, samples }: ReadFamily): void {
  const groups = Map.groupBy(samples, ({ labels }) =>
    JSON.stringify([...labels].filter(([label]) => label !== 'le').sort()),
  )
  for (const [group, of] of groups) {
    const buckets = of.filter((sample) => sample.name.endsWith('_bucket'))
    const bounds = buckets.map(({ labels }) => Number((labels.get('le') ?? fail('no le')).replace('Inf', 'Infinity')))
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) fail(`${name} ${group} has no +Inf`)
    if (bounds.some((bound, index) => index > 0 && !(bound > (bounds[index - 1] as number)))) fail(`${name}: bounds`)
    const counts = buckets.map(({ value }) => value)
    if (counts.some((count, index) => index > 0 && count < (counts[index - 1] as number)))
      fail(`${name}: not monotonic`)
    const [count, ...more] = of.filter((sample) => sample.name.endsWith('_count'))
    const sums = of.filter((sample) => sample.name.endsWith('_sum'))
    if (more.length > 0 || sums.length !== 1) fail(`${name} ${group}: one _count and one _sum`)
    if (count?.value !== counts.at(-1)) fail(`${name} ${group}: _count is not the last bucket`)
  }
}

/** The value of one series, by its labels; undefined where it is not on the page. */
export function sampled(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const wanted = Object.entries(labels)
  for (const { samples } of readPage(text).values()) {
    const found = samples.find(
      (sample) =>
        sample.name === name &&
        sample.labels.size === wanted.length &&
        wanted.every(([label, value]) => sample.labels.get(label) === value),
    )
    if (found) return found.value
  }
  return undefined
}
