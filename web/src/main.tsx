import './styles/tokens.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/components.css'
import './styles/table.css'
import './styles/shell.css'
import { render } from 'preact'
import { followLive } from './api/live.ts'
import { startSession } from './api/session.ts'
import { App } from './app.tsx'
import { followLinks } from './routing/location.ts'
import { guardUnload } from './routing/unsaved.ts'
import { listenToKeys } from './shell/keyboard.ts'

followLinks()
guardUnload()
listenToKeys()
followLive()
render(<App />, document.getElementById('app') as HTMLElement)
await startSession()
