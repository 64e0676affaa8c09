import { Dialog } from '../parts/dialog.tsx'
import { pages } from '../routing/route.ts'
import { helpShown } from './keyboard.ts'
import { names } from './menu.tsx'
import { letters } from './shortcuts.ts'

const others = [
  [['/'], 'search on this page'],
  [['↑', '↓'], 'move along the rows of a table; Enter opens one'],
  [['Esc'], 'leave a field, close a dialog or a detail'],
  [['p'], 'pause and resume live calls'],
  [['?'], 'this help'],
] as const

/** What keys do. */
export function Help() {
  if (!helpShown.value) return null
  return (
    <Dialog title="Keyboard" onClose={() => (helpShown.value = false)}>
      <dl class="facts">
        {pages.map((page) => (
          <Keys key={page} keys={['g', letters[page]]} meaning={`go to ${names[page]}`} />
        ))}
        {others.map(([keys, meaning]) => (
          <Keys key={meaning} keys={keys} meaning={meaning} />
        ))}
      </dl>
      <p class="quiet">
        Everything here is also an API:{' '}
        <a href="/admin/api/openapi.json" target="_blank" rel="noreferrer">
          its description
        </a>
      </p>
      <form method="dialog" class="actions">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </Dialog>
  )
}

function Keys({ keys, meaning }: { readonly keys: readonly string[]; readonly meaning: string }) {
  return (
    <>
      <dt class="row">
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </>
  )
}
