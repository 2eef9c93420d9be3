/* core/config.c - the options' tables and values for Python (ccompile.config, ccompile.debug). */
#include "state.h"

#include "rt/team.h"

#include <stdlib.h>

static PyObject *
raise_status(const CcStatus *st)
{
    if (st->reason == CC_REASON_NO_MEMORY) {
        return PyErr_NoMemory();
    }
    PyErr_SetString(PyExc_ValueError, st->detail);
    return NULL;
}

PyDoc_STRVAR(config_rows_doc,
             "config_rows()\n--\n\nA tuple (name, env, type, default, callable, doc) per option.");

static PyObject *
core_config_rows(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    uint32_t count;
    const CcConfigRow *row = cc_config_rows(&count);
    PyObject *list = PyList_New(count);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = Py_BuildValue("(ssssOs)", row[i].name, row[i].env,
                                       cc_config_type_name(row[i].type), row[i].value,
                                       row[i].callable ? Py_True : Py_False, row[i].doc);
        if (item == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, item);
        }
    }
    return list;
}

PyDoc_STRVAR(config_get_doc, "config_get(name, /)\n--\n\n"
             "The option's value in text form; ValueError for no such option.");

static PyObject *
core_config_get(PyObject *module, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    const CcConfigRow *row = name == NULL ? NULL : cc_config_find(name);
    PyObject *text = NULL;
    CcBuf out;

    if (name == NULL) {
        return NULL;
    }
    if (row == NULL) {
        return PyErr_Format(PyExc_ValueError, "no option '%U'", arg);
    }
    cc_buf_init(&out);
    cc_config_print(&core_state(module)->config, row, &out);
    text = out.failed ? PyErr_NoMemory() : PyUnicode_DecodeFSDefault(cc_buf_text(&out));
    cc_buf_fini(&out);
    return text;
}

PyDoc_STRVAR(config_set_doc, "config_set(name, text, /)\n--\n\n"
             "Set an option from its text form; ValueError says what is wrong.");

static PyObject *
core_config_set(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *text;
    CcStatus st;

    if (!PyArg_ParseTuple(args, "sO&:config_set", &name, PyUnicode_FSConverter, &text)) {
        return NULL;
    }
    bool good = cc_config_set(&core_state(module)->config, name, PyBytes_AS_STRING(text), &st);
    Py_DECREF(text);
    rt_team_tell_threads((uint32_t)core_state(module)->config.num_threads);
    return good ? Py_NewRef(Py_None) : raise_status(&st);
}

PyDoc_STRVAR(switch_rows_doc,
             "switch_rows()\n--\n\n"
             "{list: [(item, argument, doc)]}: the comma lists and the rules of stress=drop:...");

static PyObject *
switch_list(CcSwitchList which)
{
    static const char *const argument[] = {"", "number", "name"};
    uint32_t count;
    const CcSwitchRow *row = cc_switch_rows(which, &count);
    PyObject *list = PyList_New(count);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = Py_BuildValue("(sss)", row[i].text, argument[row[i].argument], row[i].doc);
        if (item == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, item);
        }
    }
    return list;
}

static PyObject *
core_switch_rows(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *dict = PyDict_New();

    for (int which = 0; dict != NULL && which < CC_LIST__COUNT; which++) {
        const char *name = cc_switch_list_name((CcSwitchList)which);
        PyObject *list = switch_list((CcSwitchList)which);

        if (list == NULL || PyDict_SetItemString(dict, name, list) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(list);
    }
    return dict;
}

static PyMethodDef config_methods[] = {
    {"config_rows", core_config_rows, METH_NOARGS, config_rows_doc},
    {"config_get", core_config_get, METH_O, config_get_doc},
    {"config_set", core_config_set, METH_VARARGS, config_set_doc},
    {"switch_rows", core_switch_rows, METH_NOARGS, switch_rows_doc},
    {NULL, NULL, 0, NULL},
};

static const char *
environment(const char *name)
{
    return getenv(name);
}

int
core_config_setup(PyObject *module)
{
    CcConfig *config = &core_state(module)->config;
    CcStatus st;

    cc_config_init(config);
    if (!cc_config_read(config, environment, &st) &&
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "ccompile ignores %s", st.detail) < 0) {
        return -1;
    }
    rt_team_tell_threads((uint32_t)config->num_threads);
    return PyModule_AddFunctions(module, config_methods);
}
