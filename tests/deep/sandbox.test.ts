import { javascriptAttacks, pythonAttacks, siege } from '../../src/sandbox/siege.fixture.ts'

// Every hostile program in every tier that offers its language.
siege('bwrap', 'javascript', javascriptAttacks)
siege('process', 'javascript', javascriptAttacks)
siege('worker', 'javascript', javascriptAttacks)
siege('bwrap', 'python', pythonAttacks)
