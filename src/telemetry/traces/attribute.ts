/** Longer values tell nobody more, and a queue of spans is bounded by what they weigh. */
const longest = 1_024

/** Text in JSON, whoever it comes from: half a character would make some receivers refuse the whole batch. */
export const quoted = (value: string): string => JSON.stringify(value.slice(0, longest).toWellFormed())

/** One attribute in the JSON of OTLP. */
export const text = (key: string, value: string): string => `{"key":"${key}","value":{"stringValue":${quoted(value)}}}`

/** The same text again and again is written once: names, agents and revisions are few. Forgets them when they are many. */
export function remembered(key: string, most = 1_024): (value: string) => string {
  const known = new Map<string, string>()
  return (value) => {
    let written = known.get(value)
    if (written === undefined) {
      if (known.size >= most) known.clear()
      written = text(key, value)
      known.set(value, written)
    }
    return written
  }
}

export const whole = (key: string, value: number): string => `{"key":"${key}","value":{"intValue":"${value}"}}`
