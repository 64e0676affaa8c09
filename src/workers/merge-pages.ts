/** What a scraper gets. */
export interface Page {
  readonly contentType: string
  readonly body: string
}

/** The metrics of one worker. */
export interface WorkerPage extends Page {
  readonly number: number
}

interface Family {
  /** What it is, and what kind of thing. */
  readonly about: Set<string>
  readonly samples: string[]
}

/**
 * One page of several: each value gets a label that says whose it is, and what belongs together stands together, as the
 * format wants it. Nothing is added up: whoever asks can do that, and whoever wants to know which one it is can, too.
 */
export function mergePages(pages: readonly WorkerPage[]): Page {
  const families = new Map<string, Family>()
  const familyOf = (name: string): Family => {
    const family = families.get(name) ?? { about: new Set(), samples: [] }
    families.set(name, family)
    return family
  }
  for (const { number, body } of pages) {
    let family: Family | undefined
    for (const line of body.split('\n')) {
      const [, name] = /^# (?:HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = familyOf(name)
        family.about.add(line)
      } else if (line !== '' && line !== '# EOF') family?.samples.push(labelled(line, number))
    }
  }
  const text = [...families.values()].flatMap(({ about, samples }) => [...about, ...samples])
  if (pages[0]?.body.endsWith('# EOF\n')) text.push('# EOF')
  return { contentType: pages[0]?.contentType ?? 'text/plain', body: text.map((line) => `${line}\n`).join('') }
}

/** Names have no brace in them, and values follow the last one. */
function labelled(line: string, worker: number): string {
  const [, name = '', rest = ''] = /^([^{\s]+)(.*)$/.exec(line) ?? []
  const labels = rest.startsWith('{') ? `,${rest.slice(1)}` : `}${rest}`
  return `${name}{worker="${worker}"${labels}`
}
