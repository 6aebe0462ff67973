// Whom the doctor looks at, where that is a file: bundled models are in the link, files are not, and stay in this page.
import { isModel, type Given } from '../compute/doctor'
import { defaults } from './link'
import { values } from './store.svelte'

class Files {
  patient = $state.raw<Given | null>(null)
  beside = $state.raw<Given | null>(null)
}
export const files = new Files()

// The first model is the patient; another, and what an engine printed, stands beside it.
export function receive(given: Given): void {
  if (isModel(given) && !files.patient) {
    files.patient = given
    values.patient = defaults().patient
  } else {
    files.beside = given
    values.beside = ''
  }
}
// A file that comes from another panel is a new case: a model there is the patient.
export function begin(given: Given): void {
  if (isModel(given)) {
    files.patient = files.beside = null
    values.beside = ''
  }
  receive(given)
}
export function choose(which: 'patient' | 'beside', bundled: string): void {
  files[which] = null
  values[which] = bundled
}
// A log has no place of its own.
export function exchange(): void {
  ;[files.patient, files.beside] = [files.beside, files.patient]
  ;[values.patient, values.beside] = [values.beside || defaults().patient, files.beside ? '' : values.patient]
}
